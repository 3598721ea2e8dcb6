"""Export a run to ONNX, to a web page, or to the Hugging Face hub."""
