"""Which operators make the host wait for the device, and how often; each entry names where ATen says so.

An entry maps an operator to a function of its positional arguments that returns how many values are read back, and the
bytes of each. A read is a copy to the host for which the host waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Reads = tuple[int, int]  # how many values, bytes of each

_NONE: Reads = (0, 0)
_COUNT = 8  # bytes of an int64
_FLAG = 1  # bytes of a bool


def reads(name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Reads:
    """What the operator `name` ("aten::nonzero") reads back from the device, given its arguments."""
    if named.get("output_size") is not None:  # `repeat_interleave` that is told the total
        return _NONE
    rule = _READS.get(name)
    return rule(arguments) if rule else _NONE


def has_rule(name: str) -> bool:
    """Whether the operator can make the host wait."""
    return name in _READS


def fills_by_mask(arguments: Sequence[Any], *, value_on_host: bool) -> bool:
    """Whether `index_put_` becomes `masked_fill_`, which waits for nothing.

    `canDispatchToMaskedFill` (aten/src/ATen/native/TensorAdvancedIndexingUtils.h): one value on the host, one mask,
    and otherwise whole dimensions only.
    """
    indices = [index for index in arguments[1] if index is not None]
    return (
        value_on_host
        and arguments[2].numel() == 1
        and not (len(arguments) > 3 and arguments[3])
        and len(indices) == 1
        and _is_mask(indices[0])
    )


def masks(indices: Sequence[Any]) -> Reads:
    """A mask becomes indices through `nonzero`: `expandTensors` (aten/src/ATen/native/IndexingUtils.h)."""
    return sum(1 for index in indices if index is not None and _is_mask(index)), _COUNT


def _is_mask(index: torch.Tensor) -> bool:
    return index.dtype in (torch.bool, torch.uint8)


def _item(arguments: Sequence[Any]) -> Reads:
    """`_local_scalar_dense_cuda` (aten/src/ATen/native/cuda/CUDAScalar.cu): a copy, then a stream synchronize."""
    return 1, arguments[0].element_size()


def _length(arguments: Sequence[Any]) -> Reads:
    """The output's length is read: `nonzero_cuda_out_impl` (cuda/Nonzero.cu), `compute_unique` (cuda/UniqueCub.cu)."""
    return (1, _COUNT) if arguments[0].numel() else _NONE


def _equal(arguments: Sequence[Any]) -> Reads:
    """`cuda_equal` (cuda/Equal.cpp): nothing where shapes differ or the memory is the same, else `.all().item()`."""
    left, right = arguments[:2]
    same = left.data_ptr() == right.data_ptr() and left.stride() == right.stride() and left.dtype == right.dtype
    return _NONE if left.shape != right.shape or not left.numel() or same else (1, _FLAG)


def _allclose(_: Sequence[Any]) -> Reads:
    """`allclose` (TensorCompare.cpp): `isclose(...).all().item()`."""
    return 1, _FLAG


def _masked_select(_: Sequence[Any]) -> Reads:
    """`masked_select_out_cuda_impl` (cuda/IndexKernel.cpp) indexes with the mask."""
    return 1, _COUNT


def _masked_fill(arguments: Sequence[Any]) -> Reads:
    """`masked_fill__cuda` (cuda/Indexing.cu) calls `value.item()`, which reads a value that is on the device."""
    return (1, arguments[2].element_size()) if arguments[2].is_cuda else _NONE


def _repeat_interleave(_: Sequence[Any]) -> Reads:
    """`repeat_interleave_common` (Repeat.h): the total, and whether a number is negative; none if the size is given."""
    return 2, _COUNT


def _bincount(arguments: Sequence[Any]) -> Reads:
    """`_bincount_cuda_template` (cuda/SummaryOps.cu): the least value, except of bytes, and the greatest."""
    values = arguments[0]
    if not values.numel():
        return _NONE
    return 1 if values.dtype == torch.uint8 else 2, values.element_size()


def _histc(arguments: Sequence[Any]) -> Reads:
    """`_histc_cuda_template` (cuda/SummaryOps.cu): least and greatest value, where the range is not given."""
    low, high = (*arguments[2:4], 0, 0)[:2] if len(arguments) > 2 else (0, 0)
    return (2, arguments[0].element_size()) if low == high else _NONE


def _multinomial(arguments: Sequence[Any]) -> Reads:
    """`multinomial_out` (Distributions.cpp): two checks by `.item()`, unless many are drawn with replacement."""
    with_replacement = len(arguments) > 2 and arguments[2]
    return _NONE if with_replacement and arguments[1] != 1 else (2, _FLAG)


def _check_errors(_: Sequence[Any]) -> Reads:
    """`_linalg_check_errors` (BatchLinearAlgebra.cpp): `infos.any().item()`; those that call it themselves do, too."""
    return 1, _FLAG


def _normal(arguments: Sequence[Any]) -> Reads:
    """`CHECK_NORMAL_TENSOR_STD` (DistributionTemplates.h): `std.min().ge(0).item()`; `Normal.sample` comes here."""
    deviation = arguments[1]
    return (1, _FLAG) if deviation.numel() and deviation.is_cuda else _NONE


def _svd(arguments: Sequence[Any]) -> Reads:
    """`_check_gesvdj_convergence` (cuda/linalg/BatchLinearAlgebraLib.cpp) where no driver is given; then the errors."""
    driver = arguments[3] if len(arguments) > 3 else None
    return (2 if driver is None else 1), 4


def _pinv(_: Sequence[Any]) -> Reads:
    """`linalg_pinv` (LinearAlgebra.cpp) calls `linalg_svd`."""
    return 2, 4


def _matrix_exp(arguments: Sequence[Any]) -> Reads:
    """`mexp_impl` (LinearAlgebra.cpp): the norms decide on the host how each matrix is computed."""
    return (1, arguments[0].element_size()) if arguments[0].numel() else _NONE


def _index_fill(arguments: Sequence[Any]) -> Reads:
    """`index_fill_` of a tensor (TensorAdvancedIndexing.cpp) calls `source.item()`."""
    return (1, arguments[3].element_size()) if arguments[3].is_cuda else _NONE


def _isin(arguments: Sequence[Any]) -> Reads:
    """`isin_Tensor_Tensor_out` (TensorCompare.cpp): of many, those that differ are found first."""
    elements, among = arguments[:2]
    few = among.numel() < 10.0 * elements.numel() ** 0.145
    assured = len(arguments) > 2 and arguments[2]
    return _NONE if few or assured else (2, _COUNT)


def _coalesce(arguments: Sequence[Any]) -> Reads:
    """`_coalesce_sparse_cuda` (sparse/cuda/SparseCUDATensor.cu): `thrust::unique_by_key` returns how many are left."""
    return (1, _COUNT) if arguments[0]._nnz() >= 2 else _NONE  # as the source has it


def _to_sparse(arguments: Sequence[Any]) -> Reads:
    """`dense_to_sparse` (sparse/SparseTensor.cpp, TensorConversions.cpp) calls `nonzero`."""
    dense = arguments[0].layout is torch.strided
    return (1, _COUNT) if dense and arguments[0].numel() else _NONE


def copies(name: str, arguments: Sequence[Any]) -> Sequence[torch.Tensor]:
    """The host tensors that the operator `name` itself copies to the device."""
    rule = _COPIES.get(name)
    return rule(arguments) if rule else ()


def copies_itself(name: str) -> bool:
    """Whether the operator can copy host tensors to the device."""
    return name in _COPIES


def _single(arguments: Sequence[Any]) -> Sequence[torch.Tensor]:
    """`where_self_out` (TensorCompare.cpp): `.to(device)` of a tensor of no dimension that is on the host."""
    return [each for each in arguments[:3] if not each.is_cuda and not each.dim()]


def _lengths(arguments: Sequence[Any]) -> Sequence[torch.Tensor]:
    """`ctc_loss_gpu_template` (cuda/LossCTC.cu): both lengths and the offsets of targets, all on the host."""
    return [torch.empty(arguments[0].shape[1], dtype=torch.long, device="cpu") for _ in range(3)]


def _lengths_again(arguments: Sequence[Any]) -> Sequence[torch.Tensor]:
    """`ctc_loss_backward_gpu_template` (cuda/LossCTC.cu) does the same."""
    return _lengths(arguments[1:])


_COPIES: dict[str, Callable[[Sequence[Any]], Sequence[torch.Tensor]]] = {
    "aten::_ctc_loss": _lengths,
    "aten::_ctc_loss.Tensor": _lengths,
    "aten::_ctc_loss_backward": _lengths_again,
    "aten::_ctc_loss_backward.Tensor": _lengths_again,
    "aten::where.self": _single,
}

_READS: dict[str, Callable[[Sequence[Any]], Reads]] = {
    "aten::_coalesce": _coalesce,
    "aten::_linalg_check_errors": _check_errors,
    "aten::_linalg_eigh": _check_errors,
    "aten::_linalg_svd": _svd,
    "aten::_local_scalar_dense": _item,
    "aten::_to_sparse": _to_sparse,
    "aten::_to_sparse.sparse_dim": _to_sparse,
    "aten::_to_sparse_csr": _to_sparse,
    "aten::_unique": _length,
    "aten::_unique2": _length,
    "aten::allclose": _allclose,
    "aten::bincount": _bincount,
    "aten::cholesky": _check_errors,
    "aten::equal": _equal,
    "aten::histc": _histc,
    "aten::index_fill.int_Tensor": _index_fill,
    "aten::index_fill_.int_Tensor": _index_fill,
    "aten::isin.Tensor_Tensor": _isin,
    "aten::linalg_eig": _check_errors,
    "aten::linalg_eigvals": _check_errors,
    "aten::linalg_matrix_exp": _matrix_exp,
    "aten::linalg_pinv.atol_rtol_tensor": _pinv,
    "aten::masked_fill.Tensor": _masked_fill,
    "aten::masked_fill_.Tensor": _masked_fill,
    "aten::masked_select": _masked_select,
    "aten::multinomial": _multinomial,
    "aten::nonzero": _length,
    "aten::normal.Tensor_Tensor": _normal,
    "aten::normal.float_Tensor": _normal,
    "aten::repeat_interleave.Tensor": _repeat_interleave,
    "aten::unique_consecutive": _length,
    "aten::unique_dim": _length,
}
