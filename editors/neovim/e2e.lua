-- Drives a real Neovim as a person does: sees a finding, reads about it, fixes it, saves, ignores, mistypes.
--
--   nvim --clean --headless -c "luafile editors/neovim/e2e.lua"
--
-- Prints one line for each step and exits with 0 if all of them hold. `torchlint` has to be on PATH. Neovim 0.11 and
-- later use `lsp/torchlint.lua` as it is and count in UTF-8; with PROFILE=utf-16, and always before 0.11, diagnostics are
-- pushed, and positions are in UTF-16.

local SOURCE = [[
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, data, optimizer) -> None:
    loader = DataLoader(data, batch_size=64, num_workers=4, persistent_workers=True, pin_memory=True)
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            mood = "😀"; x = x.to("cuda")
            y = y.to("cuda")
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(mood, epoch, total / len(loader))
]]
local STEPS = [[
import torch

LOG = []


def record(loss: torch.Tensor) -> None:
    LOG.append(loss.item())
]]
local LOOP = [[
import torch
from steps import record


def train(model, loader, optimizer):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record(loss)
]]
local FIXED_X = '            mood = "😀"; x = x.to("cuda", non_blocking=True)'
local FIXED_Y = '            y = y.to("cuda", non_blocking=True)'
local X, Y, LOSS = 11, 12, 17 -- the lines of the three findings

local has_config = vim.fn.has("nvim-0.11") == 1
local utf_16 = vim.env.PROFILE == "utf-16"
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")

local function say(text)
  io.stdout:write(text .. "\n")
end

local function shown(value)
  return vim.inspect(value, { newline = " ", indent = "" })
end

if utf_16 and not has_config then
  say("skipped: before 0.11, Neovim counts in UTF-16 anyway")
  vim.cmd("qall!")
end

-- Ends the run unless `holds` does, within half a minute; `seen` says what was there instead.
local function expect(step, holds, seen)
  if not vim.wait(30000, holds, 20) then
    say("FAILED " .. step .. (seen and ": " .. shown(seen()) or ""))
    vim.cmd("cquit 1")
  end
  say("ok " .. step)
end

local function line(number)
  return vim.api.nvim_buf_get_lines(0, number - 1, number, false)[1]
end

local function set_lines(first, last, lines)
  vim.api.nvim_buf_set_lines(0, first, last, false, lines)
end

-- The findings as "line:column code", columns counted in bytes.
local function findings()
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, { each.lnum + 1, each.col, each.code })
  end
  table.sort(found, function(a, b)
    return a[1] < b[1]
  end)
  return vim.tbl_map(function(each)
    return string.format("%d:%d %s", unpack(each))
  end, found)
end

local function expect_findings(step, wanted)
  expect(step, function()
    return vim.deep_equal(findings(), wanted)
  end, findings)
end

-- Opens the menu of code actions at a line, and takes the first that `wanted` accepts. Returns all titles.
local function act(number, wanted, context)
  local titles
  vim.ui.select = function(items, _, on_choice)
    titles = {}
    local chosen
    for _, item in ipairs(items) do
      local action = item.action or item[2]
      table.insert(titles, action.title)
      chosen = chosen or (wanted(action) and item)
    end
    on_choice(chosen)
  end
  vim.api.nvim_win_set_cursor(0, { number, #line(number) - 2 })
  if vim.fn.has("nvim-0.8") == 0 then
    vim.lsp.buf.code_action(context)
  else
    vim.lsp.buf.code_action({ context = context })
  end
  expect("code actions at line " .. number, function()
    return titles ~= nil
  end)
  return titles
end

local function titled(text)
  return function(action)
    return action.title:find(text, 1, true) ~= nil
  end
end

local function start(folder)
  vim.cmd("filetype on")
  if not has_config then
    local config = dofile(here .. "/lsp/torchlint.lua")
    config.name, config.root_dir = "torchlint", folder
    local id = vim.lsp.start_client(config)
    vim.api.nvim_create_autocmd("FileType", {
      pattern = config.filetypes,
      callback = function()
        vim.lsp.buf_attach_client(0, id)
      end,
    })
    return
  end
  vim.opt.runtimepath:prepend(here)
  if utf_16 then
    vim.lsp.config("torchlint", {
      -- Here and not among `capabilities`, which are merged into Neovim's own, and so cannot take one away.
      before_init = function(params)
        params.capabilities.textDocument.diagnostic = nil
        params.capabilities.general.positionEncodings = { "utf-16" }
      end,
    })
  end
  vim.lsp.enable("torchlint")
end

local function client()
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return get()[1]
end

local folder = vim.fn.tempname()
vim.fn.mkdir(folder, "p")
for name, text in pairs({ ["torchlint.toml"] = "", ["train.py"] = SOURCE, ["steps.py"] = STEPS, ["loop.py"] = LOOP }) do
  vim.fn.writefile(vim.split(text, "\n", { trimempty = true }), folder .. "/" .. name)
end
start(folder)

vim.cmd("edit " .. folder .. "/steps.py")
expect_findings("what another file calls for each batch is found", { "7:15 TL301" })
vim.cmd("edit " .. folder .. "/train.py")

local ALL = { X .. ":31 TL203", Y .. ":16 TL203", LOSS .. ":21 TL301" }
expect_findings("three findings", ALL)
local pulled = (client().server_capabilities or {}).diagnosticProvider ~= nil
say(string.format("   %s, %s", pulled and "pulled" or "pushed", client().offset_encoding))
local first = vim.diagnostic.get(0, { lnum = LOSS - 1 })[1]
expect("the finding names its source, page and frequency", function()
  local sent = first.user_data.lsp
  return first.source == "torchlint"
    and first.severity == vim.diagnostic.severity.WARN
    and sent.codeDescription.href:find("item", 1, true)
    and first.message:find("every batch", 1, true)
end, function()
  return first
end)

local function hovered()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      local text = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
      return table.concat(text, "\n"), window
    end
  end
end
vim.api.nvim_win_set_cursor(0, { LOSS, 23 })
vim.lsp.buf.hover()
expect("hover tells of the finding", function()
  local text = hovered()
  return text and text:find("TL301", 1, true) and text:find("per batch", 1, true)
end, hovered)
local text, float = hovered()
if vim.env.VERBOSE then
  say(text)
end
vim.api.nvim_win_close(float, true)

local titles = act(X, function(action)
  return action.isPreferred
end)
say("   " .. shown(titles))
expect("the preferred fix is applied", function()
  return line(X) == FIXED_X
end, function()
  return line(X)
end)
expect_findings("what was fixed is gone", { ALL[2], ALL[3] })
vim.cmd("silent write")
expect("it is saved", function()
  return vim.fn.readfile(folder .. "/train.py")[X] == FIXED_X and not vim.bo.modified
end)
expect_findings("saving changes nothing", { ALL[2], ALL[3] })

act(LOSS, titled("ignore on this line"))
expect("an ignore is written", function()
  return line(LOSS):find("total += loss.item()  # ", 1, true) and line(LOSS):find("torchlint: ignore", 1, true)
end, function()
  return line(LOSS)
end)
expect_findings("what is ignored is gone", { ALL[2] })
vim.cmd("silent undo")
vim.cmd("silent undo")
expect_findings("undone, all are back", ALL)

set_lines(0, 0, { "import (" })
expect_findings("findings stay and move where the code is broken", { "12:31 TL203", "13:16 TL203", "18:21 TL301" })
set_lines(0, 1, {})
expect_findings("mended, all are back", ALL)

act(1, titled("all safe fixes"), { only = { "source.fixAll.torchlint" }, diagnostics = {} })
expect("all safe fixes are applied", function()
  return line(X) == FIXED_X and line(Y) == FIXED_Y
end, function()
  return { line(X), line(Y) }
end)
expect_findings("what has no safe fix is left", { ALL[3] })

local opened = {}
vim.ui.open = function(uri)
  table.insert(opened, uri)
end
vim.lsp.handlers["window/showMessage"] = function(_, message)
  table.insert(opened, message.message)
end
act(LOSS, titled("explain"))
expect("the page is opened, or shown", function()
  return opened[1] and opened[1]:find("item", 1, true)
end, function()
  return opened
end)

act(LOSS, titled("unsafe"))
expect("an unsafe fix is applied when it is asked for", function()
  return line(LOSS) == "            total += loss.detach()"
end, function()
  return line(LOSS)
end)
expect_findings("nothing is left", {})

local settings = { torchlint = { run = "onSave" } }
client().settings, client().config.settings = settings, settings
client().notify("workspace/didChangeConfiguration", { settings = settings })
set_lines(Y - 1, Y, { '            y = y.to("cuda")' })
vim.wait(1000)
expect_findings("what is not saved is not looked for", {})
vim.cmd("silent write")
expect_findings("what is saved is", { ALL[2] })

vim.fn.writefile({ 'ignore = ["TL203"]' }, folder .. "/torchlint.toml")
set_lines(0, 0, { "# A line more." })
vim.cmd("silent write")
expect_findings("a changed configuration holds from then on", {})

local stopped = client()
vim.lsp.stop_client(stopped.id)
expect("the server stops when it is asked to", function()
  return stopped.is_stopped(stopped)
end)
vim.fn.delete(folder, "rf")
say("all hold")
vim.cmd("qall!")
