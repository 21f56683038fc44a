from rllib_conspec.cli.watch import error_line


def test_the_line_that_names_the_exception_is_found():
    text = """Failure # 1 (occurred at 2026-01-01)
ray::PPO.train() (pid=1)
  File "x.py", line 3, in step
    raise RuntimeError("the floor is lava")
RuntimeError: the floor is lava
  and this is its second line
RuntimeError
"""
    assert error_line(text) == "RuntimeError: the floor is lava"
    assert error_line("something odd") == "something odd"
    assert error_line("") == "unknown error"
