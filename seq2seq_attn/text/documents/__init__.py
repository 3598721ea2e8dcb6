"""Documents: files whose text stands among markup, such as subtitles."""
