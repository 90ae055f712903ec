# Every target is one call of setup_lab.py, which works without make too. Another Python: make lab PYTHON=python3.12
# More words for the command: make test ARGS="-k sharding"    make lab ARGS="--no-browser --port 9000"
# One chip for a whole class: make class ARGS="--host 0.0.0.0 --students 30"    To practise: ARGS="--on simulated"
# Without the real model (98 MB) and the compiler for TPUs (140 MB): make lab LITE=1
# A folder for a room without a network: make bundle    Also for other machines: make bundle ARGS="--system windows"
PYTHON ?= python3

.PHONY: lab class test test-long bench speed lint lessons previews docs peers bundle versions update
lab class test test-long bench speed lint lessons previews docs peers bundle versions update:
	@$(PYTHON) setup_lab.py $@ $(ARGS)
