#define CAKE_GIT_VERSION "3eb7bcf67e-dirty"
