// A token endpoint and an API by Node's http2, which knows no HTTP/1.1: CERT KEY tls|plain
// Prints its port, then the line and the body of each request.
const http2 = require('node:http2');
const fs = require('node:fs');

const [certificate, key, kind] = process.argv.slice(2);
function answer(request, response) {
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
