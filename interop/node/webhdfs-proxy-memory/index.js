'use strict';

// Nothing is kept here: see webhdfs-proxy.
