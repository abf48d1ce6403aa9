# SPDX-License-Identifier: Apache-2.0
import os

try:  # Spack 1: build systems are in the repository of packages
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass
from spack.package import *


class CakeMpi(AutotoolsPackage):
    """Batch inference of language models over MPI: the layers of a model are spread over the ranks of a job, and the
    answers to a file of prompts are the same bits on any number of them."""

    url = "file://{0}/cake-mpi-0.2.0.tar.gz".format(os.getcwd())
    manual_download = True  # made by `make dist`; looked for in the folder that spack is called in, and in mirrors

    license("Apache-2.0")

    version("0.2.0")

    variant("hdf5", default=True, description="Prompts and results in HDF5 files")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cunit", type="test")
    depends_on("mpi@3:")
    depends_on("jansson@2.10:")
    depends_on("pcre2@10.30:")
    depends_on("utf8proc@2.1:")
    depends_on("hwloc@2:")
    depends_on("libyaml")
    depends_on("zlib-api@1.2:")
    depends_on("zstd@1.4:")
    depends_on("curl@7.61:")
    depends_on("hdf5@1.10:", when="+hdf5")

    def configure_args(self):
        spec = self.spec
        args = ["--without-cuda", "--without-nccl", "MPICC=" + spec["mpi"].mpicc]
        if spec.satisfies("+hdf5"):
            args.append("--with-hdf5=" + spec["hdf5"].prefix)
        else:
            args.append("--without-hdf5")
        return args
