import subprocess
import sys


def test_whoever_looks_at_an_environment_needs_neither_ray_nor_torch():
    script = (
        "import sys; from rllib_conspec.environments import look, make_vector;"
        "facts = look('rllib_conspec:MultiKeyToDoor-v0', {});"
        "make_vector('rllib_conspec:MultiKeyToDoor-v0', {}, 2, facts).reset();"
        "print(sorted({'ray', 'torch'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]", answer.stderr
