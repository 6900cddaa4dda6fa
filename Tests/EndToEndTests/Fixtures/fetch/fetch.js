// GETs a URL and prints the answer: fetch.js https|tunnel|fetch URL. `tunnel`: for a Node that reads no proxy variable.
const http = require('http');
const https = require('https');
const [way, url] = process.argv.slice(2);
const fail = (error) => {
    console.error(error);
    process.exit(1);
};
const get = (options) =>
    https.get(url, options, (answer) => answer.pipe(process.stdout)).on('error', fail);

if (way === 'fetch') {
    fetch(url).then((answer) => answer.text()).then(console.log, fail);
} else if (way === 'https') {
    get({});
} else {
    const { hostname } = new URL(url);
    http.request(process.env.https_proxy, { method: 'CONNECT', path: `${hostname}:443`, agent: false })
        .on('connect', (_, socket) => get({ agent: new https.Agent({ socket, servername: hostname }) }))
        .on('error', fail).end();
}
