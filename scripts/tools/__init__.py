"""Small scripts: the demonstration, numbers into documents, golden curves, the package's shape."""
