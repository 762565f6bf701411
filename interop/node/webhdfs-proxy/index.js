'use strict';

// In the place of the package of this name, which is a server that the client's tests bring along: what comes to its port
// goes on to the server in WEBHDFS_PORT.

const net = require('net');

exports.createServer = function createServer(opts, storage, done) {
  const server = net.createServer((client) => {
    const served = net.connect(Number(process.env.WEBHDFS_PORT), '127.0.0.1');
    client.pipe(served).pipe(client);
    client.on('error', () => served.destroy());
    served.on('error', () => client.destroy());
  });
  // Tests end with the process, not with the server.
  server.unref();
  server.listen(opts.http.port, done);
};
