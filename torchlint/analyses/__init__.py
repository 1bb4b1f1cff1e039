"""Facts that rules of several groups share, each built on the semantics."""
