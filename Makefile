# Everything a newcomer needs: `make demo`, `make test`, `make lint`. Each makes .venv first, from nothing but Python 3.11
# and a C compiler.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(VENV)/torch
AUDIT := $(VENV)/audit
WITH_TORCH := tests/loader/torch/test_adapter.py tests/test_examples.py tests/test_loader_docs.py
OUT := out/demo
NATIVE := $(foreach package,loader transforms,$(package)/native $(package)/native/include)
RECIPE := recipes/demo.yaml
INPUT ?=
# With INPUT='some/pages.warc.gz' the demo's recipe reads these files instead of the crawl that it makes itself.
FROM := $(if $(INPUT),--input '$(INPUT)',)

.PHONY: demo test test-all test-torch terraform-test sanitize lint clean

$(VENV)/.installed: setup.py requirements.txt requirements-dev.txt $(wildcard $(addsuffix /*.[ch],$(NATIVE)))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt --requirement requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

test: $(VENV)/.installed $(AUDIT)/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Every cell of every matrix, every size in full: docs/testing.md.
test-all: $(VENV)/.installed $(AUDIT)/.installed
	REFINERY_TESTS=all $(BIN)/python -m pytest -n 2 --dist worksteal

# What audits the repository (checkov and its parsers) cannot live beside the pipeline: it needs older versions. Most of
# its modules are never imported, so they are not compiled.
$(AUDIT)/.installed: requirements-audit.txt | $(VENV)/.installed
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile \
	    --requirement requirements-audit.txt
	touch $@

# What `make test` skips without PyTorch. .venv stays without it: an environment of its own borrows everything else.
$(TORCH)/.installed: $(VENV)/.installed setup.py
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check $$(grep -o 'torch==[0-9.]*' setup.py | head -1)
	$(BIN)/python -c "import site; print('import site; site.addsitedir(' + repr(site.getsitepackages()[0]) + ')')" \
	    > $$($(TORCH)/bin/python -c "import site; print(site.getsitepackages()[0])")/venv.pth
	touch $@

test-torch: $(TORCH)/.installed
	$(TORCH)/bin/python -m pytest $(WITH_TORCH)

# What `make test` cannot do without Terraform's google provider: `terraform validate` and `terraform test`.
terraform-test:
	terraform/test.sh

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer, then fuzzers: docs/kernels.md.
sanitize: $(VENV)/.installed
	tests/native/sanitize.sh $(BIN)/python

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy refinery
	$(BIN)/mypy --explicit-package-bases benchmarks
	$(BIN)/bandit --quiet --recursive --severity-level medium loader transforms pipelines recipes

# A corpus is immutable, so every demo starts in an empty folder.
demo: $(VENV)/.installed
	rm -rf $(OUT)
	$(BIN)/python recipes/demo_crawl.py $(OUT)/input
	$(BIN)/refinery train-quality --positive $(OUT)/input/good.jsonl --negative $(OUT)/input/bad.jsonl \
	    --output $(OUT)/quality.bin
	$(BIN)/refinery train-tokenizer $(RECIPE) $(FROM) --output $(OUT)/tokenizer.json --vocab-size 4000
	$(BIN)/refinery refine $(RECIPE) $(FROM) --output $(OUT)/corpus
	$(BIN)/refinery verify $(OUT)/corpus
	@echo
	@echo "The corpus:      $(OUT)/corpus/train and $(OUT)/corpus/validation (Megatron .bin/.idx, provenance beside them)"
	@echo "Its books:       $(OUT)/corpus/manifest.json (files, checksums, the funnel with every reason)"
	@echo "What fell out:   $(OUT)/corpus/rejects and $(OUT)/corpus/dead_letters"

clean:
	rm -rf $(VENV) build *.egg-info loader/native/*.so transforms/native/*.so $(OUT)
