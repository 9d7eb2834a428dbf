"""Writing models and configs for other tools: the only rooms, beside the frontends, that know their formats."""

from qbench.exporters.onnx_qdq import onnx_model, write_onnx
from qbench.exporters.ort_overrides import tensor_quant_overrides, write_tensor_quant_overrides

__all__ = ["onnx_model", "tensor_quant_overrides", "write_onnx", "write_tensor_quant_overrides"]
