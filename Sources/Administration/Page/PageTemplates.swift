/// What the pages are made of. Styles and scripts are files of their own (`PageStyle`, `PageScript`): the
/// Content-Security-Policy allows none in a page.
enum PageTemplates {
    static let all = [
        "head": head, "foot": foot, "page": page, "live": live, "clients": clients, "client": client,
        "upstreams": upstreams, "message": message, "device": device, "gate": gate, "confirm": confirm,
        "fragment": fragment, "part": part,
    ]

    private static let head = """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>{{title}} · heimdallr-proxy</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml">
        <link rel="stylesheet" href="/page.css">
        <script src="/page.js" defer></script>
        {{#reload}}<noscript><meta http-equiv="refresh" content="{{reload}}"></noscript>{{/reload}}
        {{#goHome}}<meta http-equiv="refresh" content="{{goHome}};url=/">{{/goHome}}
        </head>
        <body{{#kind}} data-kind="{{kind}}"{{/kind}}>
        <a class="skip" href="#content">Skip to the content</a>

        """

    private static let foot = """
        </body>
        </html>

        """

    private static let page = """
        {{>head}}
        <div class="sheet">
        <header class="top">
        <div>
        <h1>heimdallr-proxy</h1>
        <p class="sub">Keeps your OAuth tokens fresh, and puts them on requests.</p>
        </div>
        <p id="connection" class="connection" role="status" hidden></p>
        </header>
        <p id="notice" class="notice" role="status" aria-live="polite"></p>
        <main id="content" tabindex="-1">
        <div id="live">
        {{>live}}
        </div>
        </main>
        <footer class="bottom">
        <p>Version {{version}}. For programs: <a href="/status">status</a>, <a href="/metrics">metrics</a>,
        <a href="/readyz?strict">readiness</a>. No token is ever shown here.</p>
        </footer>
        </div>
        {{>foot}}
        """

    private static let fragment = "{{>live}}"

    private static let live = """
        <section class="summary" aria-label="The proxy">
        <dl>
        <div><dt>State</dt><dd><span class="chip {{overall.tone}}">{{overall.word}}</span></dd></div>
        <div><dt>Running for</dt><dd>{{uptime}}</dd></div>
        <div><dt>Requests in flight</dt><dd>{{inFlight}}</dd></div>
        </dl>
        </section>
        {{>clients}}
        {{>upstreams}}
        """

    private static let clients = """
        <section aria-labelledby="clients-title">
        <h2 id="clients-title">Clients</h2>
        {{^hasClients}}<p class="empty">The configuration has no clients.</p>{{/hasClients}}
        {{#hasClients}}
        <table class="cards clients" role="table">
        <caption class="unseen">OAuth clients, with the state of their tokens</caption>
        <thead role="rowgroup"><tr role="row">
        <th role="columnheader" scope="col">Client</th>
        <th role="columnheader" scope="col">State</th>
        <th role="columnheader" scope="col">Signed in</th>
        <th role="columnheader" scope="col">Scopes</th>
        <th role="columnheader" scope="col">Expires in</th>
        <th role="columnheader" scope="col">Last refresh</th>
        <th role="columnheader" scope="col"><span class="unseen">Actions</span></th>
        </tr></thead>
        <tbody role="rowgroup">
        {{#clients}}{{>client}}{{/clients}}
        </tbody>
        </table>
        {{/hasClients}}
        </section>

        """

    private static let client = """
        <tr role="row" class="{{#note}}has-note{{/note}}{{#calm}}has-calm{{/calm}}{{#failing}} failing{{/failing}}">
        <th role="rowheader" scope="row"><span class="name">{{name}}</span>
        <span class="minor">{{grant}}</span>{{#issuer}}
        <span class="minor url">{{issuer}}</span>{{/issuer}}</th>
        <td role="cell" data-label="State" class="state"><span class="chip {{tone}}">{{word}}</span>{{#waiters}}
        <span class="minor">{{waiters}}</span>{{/waiters}}</td>
        <td role="cell" data-label="Signed in"{{^who}} class="nobody"{{/who}}>{{#who}}<span class="who">{{who}}</span>{{/who}}{{^who}}<span class="minor">{{nobody}}</span>{{/who}}</td>
        <td role="cell" data-label="Scopes"{{^hasScopes}} class="blank"{{/hasScopes}}>{{#hasScopes}}<ul class="scopes">{{#scopes}}<li>{{.}}</li>{{/scopes}}</ul>{{/hasScopes}}{{^hasScopes}}<span class="minor">–</span>{{/hasScopes}}{{#notGranted}}
        <span class="minor">{{notGranted}}</span>{{/notGranted}}</td>
        <td role="cell" data-label="Expires in" class="number{{^expires}} blank{{/expires}}">{{#expires}}<span data-countdown="{{seconds}}">{{expires}}</span>{{/expires}}{{^expires}}<span class="minor">–</span>{{/expires}}{{#refreshEnds}}
        <span class="minor">{{refreshEnds}}</span>{{/refreshEnds}}</td>
        <td role="cell" data-label="Last refresh" class="number">{{#refreshed}}<span>{{refreshed}} ago</span>{{/refreshed}}{{^refreshed}}<span class="minor">never</span>{{/refreshed}}</td>
        <td role="cell" class="actions">
        {{#signIn}}<a class="button{{#urgent}} main{{/urgent}}" id="in-{{name}}" href="/login/{{name}}" aria-label="{{signInWord}}: {{name}}">{{signInWord}}</a>{{/signIn}}
        {{#canRefresh}}<form method="post" action="/refresh/{{name}}">{{#csrf}}<input type="hidden" name="csrf" value="{{csrf}}">{{/csrf}}<button class="button" id="re-{{name}}" aria-label="Refresh now: {{name}}">Refresh now</button></form>{{/canRefresh}}
        {{#canSignOut}}<form method="post" action="/logout/{{name}}">{{#csrf}}<input type="hidden" name="csrf" value="{{csrf}}">{{/csrf}}<button class="button quiet" id="out-{{name}}" aria-label="Sign out: {{name}}">Sign out</button></form>{{/canSignOut}}
        </td>
        </tr>
        {{#note}}<tr role="row" class="note{{#failing}} failing{{/failing}}"><td role="cell" colspan="7"><details class="fold" id="more-{{name}}"><summary id="say-{{name}}"><span class="{{tone}}">{{short}}</span></summary>
        <p class="{{tone}}"><strong>{{headline}}</strong> {{#detail}}{{>part}}{{/detail}}</p>{{#hasTodo}}<p>What to do: {{#todo}}{{>part}}{{/todo}}</p>{{/hasTodo}}{{#also}}<p>{{#line}}{{>part}}{{/line}}</p>{{/also}}{{#command}}<p>Run: <code>{{command}}</code></p>{{/command}}
        <p class="narrow">{{facts}}</p></details></td></tr>{{/note}}{{#calm}}<tr role="row" class="note calm"><td role="cell" colspan="7"><details class="fold" id="more-{{name}}"><summary id="say-{{name}}">Details</summary><p>{{facts}}</p></details></td></tr>{{/calm}}

        """

    /// See `Sentence.Part`.
    private static let part = "{{#code}}<code>{{code}}</code>{{/code}}{{#words}}{{words}}{{/words}}"

    private static let upstreams = """
        <section aria-labelledby="upstreams-title">
        <h2 id="upstreams-title">Upstreams</h2>
        {{^hasUpstreams}}<p class="empty">The configuration has no upstreams.</p>{{/hasUpstreams}}
        {{#hasUpstreams}}
        <table class="cards upstreams" role="table">
        <caption class="unseen">Upstreams, with what was asked of them since the proxy started</caption>
        <thead role="rowgroup"><tr role="row">
        <th role="columnheader" scope="col">Upstream</th>
        <th role="columnheader" scope="col">Client</th>
        <th role="columnheader" scope="col" class="number">Requests</th>
        <th role="columnheader" scope="col" class="number">Errors</th>
        <th role="columnheader" scope="col">Latency</th>
        </tr></thead>
        <tbody role="rowgroup">
        {{#upstreams}}<tr role="row" class="{{#hasMore}}has-note{{/hasMore}}{{#failed}} failing{{/failed}}">
        <th role="rowheader" scope="row"><span class="name">{{name}}</span>{{#destinations}}
        <span class="minor url">→ {{.}}</span>{{/destinations}}</th>
        <td role="cell" data-label="Client">{{#client}}{{client}}{{/client}}{{^client}}<span class="minor">no token</span>{{/client}}</td>
        <td role="cell" data-label="Requests" class="number">{{requests}}</td>
        <td role="cell" data-label="Errors" class="number">{{#failed}}<span class="bad">{{errors}}</span>{{/failed}}{{^failed}}{{errors}}{{/failed}}{{#codes}}
        <span class="minor">{{codes}}</span>{{/codes}}</td>
        <td role="cell" data-label="Latency" class="latency{{^chart}} blank{{/chart}}">{{#chart}}<svg role="img" viewBox="0 0 {{width}} 32" width="{{width}}" height="32" aria-label="{{label}}">{{#bars}}<rect class="{{tone}}" x="{{x}}" y="{{y}}" width="9" height="{{height}}" rx="1.5"><title>{{title}}</title></rect>{{/bars}}</svg>
        <span class="minor">{{quantiles}}</span>{{/chart}}{{^chart}}<span class="minor">–</span>{{/chart}}</td>
        </tr>
        {{#hasMore}}<tr role="row" class="note use{{#failed}} failing{{/failed}}"><td role="cell" colspan="5"><details class="fold" id="use-{{id}}"><summary id="how-{{id}}">{{#failure}}<span class="bad">Last failure, {{failureAge}}</span>{{/failure}}{{^failure}}Use it like this{{/failure}}</summary>{{#failure}}
        <p class="bad"><strong>Last failure, {{failureAge}}:</strong> {{failure}}</p>{{/failure}}{{#hasExamples}}
        <p class="minor">Use it like this:</p>{{/hasExamples}}{{#examples}}
        <p class="example"><code>{{.}}</code> <button type="button" class="button copy" data-copy hidden>Copy</button></p>{{/examples}}</details></td></tr>{{/hasMore}}
        {{/upstreams}}
        </tbody>
        </table>
        {{/hasUpstreams}}
        </section>

        """

    private static let message = """
        {{>head}}
        <main class="card" id="content" tabindex="-1">
        <p class="brand">heimdallr-proxy</p>
        <h1 class="{{tone}}">{{headline}}</h1>
        <div id="outcome" role="status"{{#handsOver}} data-fragment{{/handsOver}}>
        {{#lines}}<p>{{.}}</p>
        {{/lines}}
        {{#shortfall}}<p class="warn"{{#until}} data-until="{{until}}"{{/until}}>{{.}}</p>
        {{/shortfall}}
        {{#quote}}<blockquote><p>{{quote}}</p></blockquote>{{/quote}}
        </div>
        {{#forget}}<form method="post" action="/logout/{{name}}"><p>Or forget the tokens here alone; the server may go on taking them until they expire.</p>
        <input type="hidden" name="csrf" value="{{csrf}}"><input type="hidden" name="local" value="true"><button class="button main">Forget here</button></form>{{/forget}}
        <p class="ways">{{#again}}<a class="button main" href="{{again}}">Try again</a>{{/again}} <a class="button" href="/">To the overview</a></p>
        </main>
        {{>foot}}
        """

    private static let confirm = """
        {{>head}}
        <main class="card" id="content" tabindex="-1">
        <p class="brand">heimdallr-proxy</p>
        <h1>Sign in “{{name}}”?</h1>
        <p>Another site, or a link in a message, brought you here. If you want this proxy to act for you as the client
        <strong>{{name}}</strong>, go on; nothing has happened so far.</p>
        <p class="ways"><a class="button main" href="/login/{{name}}">Sign in</a> <a class="button" href="/">To the overview</a></p>
        </main>
        {{>foot}}
        """

    private static let device = """
        {{>head}}
        <main class="card" id="content" tabindex="-1">
        <p class="brand">heimdallr-proxy</p>
        <h1>Sign in “{{name}}” on any device</h1>
        <div id="device" data-poll="3">
        <p>Open this address on your telephone or in another window, and type in the code:</p>
        <p><a class="address" href="{{address}}" rel="noreferrer" target="_blank">{{shown}}</a></p>
        <p class="code" aria-label="The code: {{spelled}}">{{code}}</p>
        {{#qr}}<svg class="qr" role="img" viewBox="0 0 {{extent}} {{extent}}" width="220" height="220" aria-label="QR code with the address"><rect width="{{extent}}" height="{{extent}}" fill="#fff"/><path d="{{path}}" fill="#000"/></svg>
        <p class="minor">The QR code holds the address{{#complete}} and the code{{/complete}}.</p>{{/qr}}
        <p class="waiting" role="status">Waiting for you to sign in. The code is good for another <span data-countdown="{{seconds}}">{{left}}</span>.</p>
        </div>
        <p class="ways"><a class="button" href="/">To the overview</a></p>
        </main>
        {{>foot}}
        """

    private static let gate = """
        {{>head}}
        <main class="card" id="content" tabindex="-1">
        <p class="brand">heimdallr-proxy</p>
        <h1>This page wants its token</h1>
        {{#wrong}}<p class="bad" role="alert">{{wrong}}</p>{{/wrong}}
        <form method="post" action="/enter" class="gate">
        <input type="hidden" name="csrf" value="{{csrf}}"><input type="hidden" name="next" value="{{next}}">
        <label for="token">The value of <code>admin.token</code></label>
        <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
        <button class="button main">Go on</button>
        </form>
        </main>
        {{>foot}}
        """
}
