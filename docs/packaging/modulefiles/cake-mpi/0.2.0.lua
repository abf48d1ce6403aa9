-- SPDX-License-Identifier: Apache-2.0
-- For Lmod. Change root and the MPI that it was built with.
local root = "/opt/cake-mpi/0.2.0"

help([[cake-mpi 0.2.0: batch inference of language models over MPI. man cake-mpi; mpirun -np 2 cake-mpi --help]])
whatis("Name: cake-mpi")
whatis("Version: 0.2.0")
whatis("Description: batch inference of language models over MPI")
conflict("cake-mpi")
-- prereq("openmpi")
-- setenv("CAKE_DEVICE", "cpu") -- for a build with CUDA
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
