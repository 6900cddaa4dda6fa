// A token endpoint and an API by Node's http2, which knows no HTTP/1.1: CERT KEY tls|plain [calls]
// With calls it accepts POST only, as servers of gRPC do.
// Prints its port, then the line and the body of each request.
const http2 = require('node:http2');
const fs = require('node:fs');

const [certificate, key, kind, calls] = process.argv.slice(2);
function answer(request, response) {
  if (calls && request.method !== 'POST') return request.stream.close(http2.constants.NGHTTP2_PROTOCOL_ERROR);
  let body = '';
  request.on('data', piece => { body += piece; });
  request.on('end', () => {
    console.log(`${request.method} ${request.url} HTTP/${request.httpVersion} ${body}`);
    const isToken = request.url === '/token';
    response.setHeader('content-type', isToken ? 'application/json' : 'text/plain');
    response.end(isToken ? JSON.stringify({ access_token: 'the-token-2', token_type: 'Bearer', expires_in: 600 }) : 'ok');
  });
}
const server = kind === 'tls'
  ? http2.createSecureServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, answer)
  : http2.createServer(answer);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
