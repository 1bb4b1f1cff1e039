"""TL661: arguments of a `Trainer` that leave precision and workers at their defaults are flagged."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "hf-slow-defaults"
MARK = "  # <- hf-slow-defaults"


def program(arguments: str, *, last: str = "trainer.train()", load: str = "AutoModel.from_pretrained('gpt2')") -> str:
    """A script that fine-tunes with these arguments."""
    return (
        "import torch\nfrom transformers import AutoModel, Seq2SeqTrainingArguments, Trainer, TrainingArguments\n\n"
        "from data import dataset, options\n\n"
        f"model = {load}\n"
        f"arguments = {arguments}\n"
        "trainer = Trainer(model=model, args=arguments, train_dataset=dataset)\n"
        f"{last}\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "TrainingArguments('out')" + MARK,
        "TrainingArguments(output_dir='out', num_train_epochs=3, learning_rate=1e-5)" + MARK,
        "Seq2SeqTrainingArguments('out', predict_with_generate=True)" + MARK,
    ],
)
def test_defaults(arguments: str) -> None:
    check_snippet(program(arguments), RULE)


@pytest.mark.parametrize(
    "arguments",
    [
        "TrainingArguments('out', bf16=True)",
        "TrainingArguments('out', fp16=options.fp16)",
        "TrainingArguments('out', tf32=True)",
        "TrainingArguments('out', dataloader_num_workers=2)",
        "TrainingArguments('out', deepspeed='zero.json')",
        "TrainingArguments('out', use_cpu=True)",
        "TrainingArguments(**options)",
        "dict(output_dir='out')",
    ],
)
def test_decided(arguments: str) -> None:
    check_snippet(program(arguments), RULE)


@pytest.mark.parametrize(
    ("last", "load"),
    [
        ("trainer.evaluate()", "AutoModel.from_pretrained('gpt2')"),
        ("trainer.train()", "AutoModel.from_pretrained('gpt2', load_in_8bit=True)"),
        ("trainer.train()", "AutoModel.from_pretrained('gpt2', torch_dtype='auto')"),
        ("trainer.train()", "AutoModel.from_pretrained('gpt2').half()"),
    ],
)
def test_not_trained_or_not_in_float32(last: str, load: str) -> None:
    check_snippet(program("TrainingArguments('out')", last=last, load=load), RULE)


@pytest.mark.parametrize(("rows", "mark"), [("100", ""), ("20_000", MARK), ("count", MARK)])
def test_a_few_samples(rows: str, mark: str) -> None:
    last = f"trainer.train_dataset = dataset.select(range({rows}))\ntrainer.train()"
    check_snippet(program(f"TrainingArguments('out'){mark}", last=last), RULE)


@pytest.mark.parametrize(
    ("made", "mark"),
    [
        ("Tuner(model, arguments, dataset)", MARK),
        ("Tuner(model=model, args=arguments, train_dataset=dataset)", MARK),
        ("Tuner(model, dataset, arguments)", ""),
        ("Tuner(options=arguments)", ""),
    ],
)
def test_what_takes_the_arguments_as_a_trainer_does(made: str, mark: str) -> None:
    code = program(f"TrainingArguments('out'){mark}")
    check_snippet(code.replace("Trainer(model=model, args=arguments, train_dataset=dataset)", made), RULE)
