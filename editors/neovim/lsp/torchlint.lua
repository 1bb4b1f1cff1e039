---@type vim.lsp.Config
return {
  cmd = { "torchlint", "server" },
  filetypes = { "python" },
  root_markers = { "torchlint.toml", ".torchlint.toml", "pyproject.toml", ".git" },
  settings = { torchlint = {} }, -- e.g. { preview = true, run = "onSave" }
}
