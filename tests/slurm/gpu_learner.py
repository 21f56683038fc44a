"""For `ray submit`: where the learner of a configuration would be, and with which GPU."""

import json
import os
import socket
import sys

import ray

from rllib_conspec import ConSpec, ConSpecConfig

config = (
    ConSpecConfig()
    .environment("rllib_conspec:MultiKeyToDoor-v0")
    .update_from_dict(json.loads(sys.argv[1]))
)
bundle = dict(ConSpec.default_resource_request(config.to_dict()).bundles[0])
ray.init("auto", log_to_driver=False)


@ray.remote(num_cpus=bundle.pop("CPU"), num_gpus=bundle.pop("GPU", 0), resources=bundle)
def place():
    return socket.gethostname(), ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]


print("PLACE", *ray.get(place.remote()))
