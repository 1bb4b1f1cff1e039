"""What several rules of this group recognise."""

from torchlint.rule import Call

LOADERS = (
    Call("torch.utils.data.DataLoader"),
    Call("torch_geometric.loader.DataLoader"),
    Call("torch_geometric.data.DataLoader"),
    Call("torchdata.stateful_dataloader.StatefulDataLoader"),
    Call("dgl.dataloading.GraphDataLoader"),
)
