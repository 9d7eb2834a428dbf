"""What a session can be taken away as; the writers are in `qbench.session.export`, which brings onnx."""

FILES = {
    "config.json": "the config: every setting, to load again",
    "report.json": "what each layer and the output lost",
    "model.qbench": "the integer model as an archive of qbench",
    "model.qdq.onnx": "the model for onnxruntime and OpenVINO, quantized (QDQ)",
    "model.tflite": "the integer model for LiteRT, in TFLite's arithmetic (needs the extra tflite)",
    "overrides.json": "scales and zero points for onnxruntime's own quantizer",
}
"""File names, and what each is."""

USUAL = ("config.json", "report.json", "model.qbench", "model.qdq.onnx")
"""Those that are written unless others are asked for."""
