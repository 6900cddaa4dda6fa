// Walks the course with Node's http: node course.js URL. Each step prints one line.
// With http_proxy set, asks that proxy in absolute form, as the agents for it do; Node itself has none.
const http = require('http');

const base = process.argv[2];
const proxy = process.env.http_proxy && new URL(process.env.http_proxy);
const agent = new http.Agent({ keepAlive: true });

function ask(step, method, path, { pieces = [], counts = false } = {}) {
    return new Promise((resolve, reject) => {
        const url = new URL(base + path);
        const where = proxy
            ? { host: proxy.hostname, port: proxy.port, path: url.href, headers: { Host: url.host } }
            : { host: url.hostname, port: url.port, path: url.pathname + url.search };
        const request = http.request({ ...where, method, agent }, (response) => {
            const body = [];
            response.on('data', (piece) => body.push(piece));
            response.on('error', reject);
            response.on('end', () => {
                const all = Buffer.concat(body);
                console.log(step, response.statusCode, counts ? all.length : all.toString());
                resolve();
            });
        });
        request.on('error', reject);
        for (const piece of pieces.slice(0, -1)) request.write(piece);
        request.end(...pieces.slice(-1));
    });
}

(async () => {
    await ask('get', 'GET', '/items?x=1');
    await ask('post', 'POST', '/count', { pieces: ['hello=world'] });
    await ask('chunked', 'POST', '/count', { pieces: Array(200).fill('c'.repeat(1000)) });
    await ask('big', 'GET', '/big', { counts: true });
    await ask('head', 'HEAD', '/items?x=1');
    await ask('delete', 'DELETE', '/items?x=1');
    agent.destroy();
})();
