import numpy as np

from rllib_conspec.tasks import noise


def words(seeds, episodes):
    return noise.episode_words(np.array(seeds, np.uint64), np.array(episodes))


def test_numbers_of_one_environment_do_not_depend_on_its_neighbours():
    places = noise.places(10, 25)
    together = noise.draws(words([3, 4, 5], [0, 1, 2]), places[[7, 8, 9]])
    alone = noise.draws(words([4], [1]), places[[8]])
    assert np.array_equal(together[1:2], alone)


def test_seed_episode_and_step_each_change_the_numbers():
    places = noise.places(10, 25)
    draws = noise.draws(words([3, 4, 3, 3], [0, 0, 1, 0]), places[[5, 5, 5, 6]])
    assert len(np.unique(draws)) == draws.size


def test_cells_are_equally_likely():
    place = noise.places(1, 25)[np.zeros(20_000, int)]
    smallest = noise.draws(words(np.arange(20_000), np.zeros(20_000, int)), place).argmin(axis=1)
    counts = np.bincount(smallest, minlength=25)
    assert np.all(np.abs(counts - 800) < 5 * np.sqrt(800))


def test_seeds_wider_than_a_word_are_accepted():
    assert noise.seed_word(2**70 + 5) == noise.seed_word(5)
