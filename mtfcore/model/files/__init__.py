"""Real models from files: weights, tokenizer and chat template of the Llama family.

    found = mtf.model.load("smollm2-135m")              # what `python -m mtfcore.model fetch` brought
    found = mtf.model.load("models/mine.gguf")          # a GGUF file
    found = mtf.model.load("models/mine")               # a folder: config.json, *.safetensors, tokenizer.json
    found.cfg, found.params["wq"], found.prompt([{"role": "user", "content": "Hello"}])

A file is data that somebody else wrote. Before anything is allocated, the lengths and counts in its header are held
against the file's size (`gguf_check`, `safetensors_check`); then the libraries `gguf` and `safetensors` read it.
Nothing is unpickled and nothing in a file is run but a chat template, which is metered (`metering`). Importing this
loads none of those libraries. First file to read: `loading`; then `gguf_model`, `weights`, `llama`.
"""

from mtfcore.model.files.loading import LoadedModel, load

__all__ = ["LoadedModel", "load"]
