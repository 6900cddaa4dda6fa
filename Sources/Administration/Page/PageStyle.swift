/// `/page.css`. Fonts are the system's; nothing is fetched from anywhere.
enum PageStyle {
    static let text = """
        :root {
          color-scheme: light dark;
          --ground: #f6f5f2; --sheet: #ffffff; --ink: #1d1c1a; --soft: #5f5b54; --line: #e4e1da;
          --accent: #2f4a9a; --on-accent: #ffffff; --hover: #f0eee9;
          --good: #1f6b3a; --good-ground: #e3f2e7; --busy: #2f4a9a; --busy-ground: #e6ebfa;
          --warn: #8a4b00; --warn-ground: #fdefd8; --bad: #a02323; --bad-ground: #fbe6e4; --still: #5f5b54;
          --still-ground: #eeece7; --bar: #7d8fc9; --bar-slow: #d09a4a;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #131417; --sheet: #1b1d21; --ink: #ebe9e4; --soft: #a9a59c; --line: #31343a;
            --accent: #a9bbff; --on-accent: #14182b; --hover: #25282e;
            --good: #8fdba6; --good-ground: #17331f; --busy: #b3c2ff; --busy-ground: #232b47;
            --warn: #f3c07d; --warn-ground: #3b2a10; --bad: #ffa8a1; --bad-ground: #431d1c; --still: #a9a59c;
            --still-ground: #2a2c31; --bar: #7488d6; --bar-slow: #c08a3c;
          }
        }
        * { box-sizing: border-box; }
        html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
        body { margin: 0; background: var(--ground); color: var(--ink); -webkit-text-size-adjust: 100%; }
        .skip { position: absolute; left: 1rem; top: -4rem; padding: .5rem 1rem; background: var(--sheet);
          color: var(--ink); border-radius: .5rem; z-index: 1; }
        .skip:focus { top: 1rem; }
        .unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden;
          clip-path: inset(50%); white-space: nowrap; }
        a { color: var(--accent); text-underline-offset: .15em; }
        :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .25rem; }
        main:focus { outline: none; }
        [hidden] { display: none; }

        .sheet { max-width: 84rem; margin: 0 auto; padding: 3.5rem 2rem 4rem; }
        .top { display: flex; justify-content: space-between; align-items: flex-start; gap: 1rem; margin-bottom: 2rem; }
        h1 { font-size: 1.75rem; line-height: 1.2; font-weight: 650; letter-spacing: -.02em; margin: 0; }
        .sub { color: var(--soft); margin: .35rem 0 0; }
        h2 { font-size: 1.0625rem; font-weight: 650; letter-spacing: -.01em; margin: 0 0 .75rem; }
        section + section { margin-top: 3rem; }
        .connection { margin: 0; font-size: .875rem; color: var(--warn); background: var(--warn-ground);
          padding: .25rem .75rem; border-radius: 1rem; }
        .notice:empty { display: none; }
        .notice.bad, .sheet .notice.bad { background: var(--bad-ground); color: var(--bad); font-weight: 500; }
        .notice form { margin-top: .6rem; }
        .notice { background: var(--busy-ground); color: var(--ink); border-radius: .625rem; padding: .75rem 1rem;
          margin: 0 0 1.5rem; white-space: pre-line; overflow-wrap: anywhere; }
        .summary dl { display: flex; flex-wrap: wrap; gap: 1rem 3.5rem; margin: 0; }
        .summary dt { font-size: .8125rem; color: var(--soft); }
        .summary dd { margin: .2rem 0 0; font-size: 1.125rem; font-variant-numeric: tabular-nums; }

        table { width: 100%; border-collapse: separate; border-spacing: 0; background: var(--sheet);
          border: 1px solid var(--line); border-radius: .75rem; font-size: .9375rem; }
        th, td { text-align: left; vertical-align: top; padding: .9rem .75rem; }
        thead th { font-size: .8125rem; font-weight: 500; color: var(--soft); padding-top: .7rem;
          padding-bottom: .6rem; white-space: nowrap; }
        tbody tr > * { border-top: 1px solid var(--line); }
        tbody th { font-weight: 600; overflow-wrap: anywhere; }
        tbody th .minor:not(.url) { white-space: nowrap; }
        th:first-child, td:first-child { padding-left: 1.25rem; }
        th:last-child, td:last-child { padding-right: 1.25rem; }
        .number { font-variant-numeric: tabular-nums; white-space: nowrap; }
        .minor { display: block; font-size: .8125rem; font-weight: 400; color: var(--soft); }
        td > .minor:only-child { font-size: inherit; }
        .who, .name, .url { overflow-wrap: anywhere; }
        .clients th, .upstreams th { min-width: 9rem; }
        .clients .who { display: inline-block; min-width: 6rem; max-width: 16rem; }
        .scopes + .minor { overflow-wrap: anywhere; max-width: 15rem; }
        tr.failing > :first-child { box-shadow: inset 4px 0 0 var(--bad); }
        tr.use p { display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center; }
        tr.use p.minor { display: block; }
        tr.use code { user-select: all; background: var(--still-ground); color: var(--ink); border-radius: .3rem;
          padding: .15rem .45rem; overflow-wrap: anywhere; }
        .button.copy { padding: .05rem .5rem; font-size: .75rem; }
        .button[hidden] { display: none; }
        .bad { color: var(--bad); font-weight: 600; }
        .empty { color: var(--soft); }
        .scopes { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem; max-width: 15rem; }
        .scopes li { font-size: .8125rem; background: var(--still-ground); border-radius: .3rem; padding: .05rem .45rem;
          overflow-wrap: anywhere; max-width: 100%; }
        .chip { display: inline-block; white-space: nowrap; margin: -.1rem 0; font-size: .8125rem; font-weight: 600; line-height: 1.35; border-radius: 1rem;
          padding: .2rem .7rem; color: var(--still); background: var(--still-ground); }
        .chip::before { content: ""; display: inline-block; width: .5rem; height: .5rem; border-radius: 50%;
          margin-right: .45rem; background: currentColor; }
        .chip.good { color: var(--good); background: var(--good-ground); }
        .chip.busy { color: var(--busy); background: var(--busy-ground); }
        .chip.warn { color: var(--warn); background: var(--warn-ground); }
        .chip.warn::before { border-radius: 0; transform: rotate(45deg) scale(.9); }
        .chip.bad { color: var(--bad); background: var(--bad-ground); }
        .chip.bad::before { border-radius: 0; }
        tr.has-note > * { padding-bottom: .35rem; }
        tr.note > td { border-top: 0; padding-top: 0; }
        tr.note p { margin: .15rem 0; font-size: .875rem; color: var(--soft); max-width: 62rem; overflow-wrap: anywhere; }
        tr.note strong { font-weight: 600; }
        tr.note code { color: var(--ink); }
        tr.note p.warn strong { color: var(--warn); }
        tr.note p.bad { font-weight: 400; }
        tr.note p.bad strong { color: var(--bad); }
        .fold > summary { cursor: pointer; font-size: .875rem; color: var(--soft); width: fit-content; }
        .fold > summary .bad { color: var(--bad); } .fold > summary .warn { color: var(--warn); font-weight: 600; }
        .narrow, tr.calm { display: none; }
        /* There is room for what a telephone folds. */
        @media (min-width: 60.01rem) {
          @supports selector(::details-content) {
            .fold::details-content { content-visibility: visible; }
            .fold > summary { display: none; }
          }
        }
        .actions { display: flex; flex-wrap: wrap; gap: .4rem; justify-content: flex-end; align-items: center; }
        td.actions { display: table-cell; text-align: right; white-space: nowrap; }
        td.actions > * { display: inline-block; margin: 0 0 .3rem .3rem; }
        form { margin: 0; }
        .button { display: inline-block; font: inherit; font-size: .875rem; font-weight: 550; line-height: 1.4;
          padding: .3rem .7rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--sheet);
          color: var(--ink); text-decoration: none; cursor: pointer; white-space: nowrap; }
        .button:hover { background: var(--hover); }
        .button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
        .button.main:hover { filter: brightness(1.1); }
        .button.quiet { border-color: transparent; background: none; color: var(--soft); }
        .button.quiet:hover { color: var(--ink); background: var(--hover); }
        .button[disabled] { opacity: .6; cursor: default; }
        .latency svg { display: block; }
        .latency rect { fill: var(--bar); }
        .latency rect.slow { fill: var(--bar-slow); }
        .latency rect.none { fill: var(--line); }
        .bottom { margin-top: 3rem; color: var(--soft); font-size: .875rem; }
        code { font: .875em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }

        .card { max-width: 34rem; margin: 9vh auto 4rem; padding: 2.5rem 2.5rem 2rem; background: var(--sheet);
          border: 1px solid var(--line); border-radius: 1rem; }
        .card .brand { margin: 0 0 1.25rem; font-size: .875rem; color: var(--soft); }
        .card h1 { margin-bottom: 1rem; font-size: 1.5rem; overflow-wrap: anywhere; }
        .card h1.good { color: var(--good); } .card h1.bad { color: var(--bad); font-weight: 650; }
        .card p { overflow-wrap: anywhere; }
        .card blockquote { margin: 1rem 0; padding: .1rem 1rem; border-left: 3px solid var(--line); color: var(--soft); }
        .ways { margin-top: 1.75rem; display: flex; flex-wrap: wrap; gap: .6rem; }
        .card .button { padding: .5rem 1.1rem; }
        .code { font: 600 2rem/1.3 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; letter-spacing: .12em;
          text-align: center; background: var(--ground); border-radius: .75rem; padding: .9rem .5rem; margin: 1.25rem 0; }
        .address { font-weight: 600; }
        .qr { display: block; margin: 1.5rem auto .25rem; border-radius: .5rem; }
        .qr + .minor { text-align: center; }
        .waiting { color: var(--soft); margin-top: 1.5rem; }
        .gate { display: grid; gap: .6rem; margin-top: 1.25rem; }
        .gate label { font-weight: 550; }
        .gate input[type=password] { font: inherit; padding: .55rem .75rem; border: 1px solid var(--soft);
          border-radius: .5rem; background: var(--sheet); color: var(--ink); width: 100%; }
        .gate .button { justify-self: start; margin-top: .5rem; }

        @media (max-width: 60rem) {
          .sheet { padding: 1.25rem 1rem 1.5rem; }
          .top { margin-bottom: 1rem; }
          .top .sub { display: none; }
          h1 { font-size: 1.5rem; }
          .bottom { margin-top: 1.25rem; font-size: .8125rem; }
          .bottom p { margin: 0; }
          .narrow { display: block; }
          .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
          .cards, .cards tbody, .cards tr, .cards th, .cards td { display: block; }
          .cards { border: 0; background: none; }
          .cards tbody tr { background: var(--sheet); border: 1px solid var(--line); border-radius: .75rem;
            padding: .55rem .8rem; margin-bottom: .5rem; }
          .cards tbody tr.has-note, .cards tbody tr.has-calm { border-bottom: 0; border-radius: .75rem .75rem 0 0; margin-bottom: 0;
            padding-bottom: 0; }
          .cards tbody tr.note { border-top: 0; border-radius: 0 0 .75rem .75rem; padding-top: .1rem; }
          /* What a note says when it is opened. */
          .clients th > .minor, .clients tr:not(.note) > td:not(.state, .actions, :has(.who, [data-countdown])) { display: none; }
          .cards tbody tr > * { border: 0; padding: .1rem 0; }
          .cards td[data-label] { display: flex; flex-wrap: wrap; gap: .1rem .5rem; align-items: baseline; }
          .cards td[data-label]::before { content: attr(data-label); font-size: .8125rem; color: var(--soft); }
          .cards .number { white-space: normal; }
          .cards td.blank, .cards td.nobody { display: none; }
          /* A card: name and state on one line, what is counted side by side, buttons at the end. */
          .cards tbody tr:not(.note) { display: flex; flex-wrap: wrap; gap: .1rem .9rem; position: relative; }
          .cards tbody tr:not(.note) > * { flex: 0 0 100%; padding: .1rem 0; }
          .cards tbody tr:not(.note) > td.number { flex: 0 1 auto; }
          .cards td.state { position: absolute; top: .6rem; right: .8rem; }
          .upstreams .latency svg { display: none; }
          .cards tbody tr:not(.note) > td[data-label="Client"], .cards tbody tr:not(.note) > td.latency { flex: 0 1 auto; }
          .cards td.number .minor { display: inline; font-size: .8125rem; }
          .cards td.state::before { content: none; }
          .clients .name { display: block; padding-right: 9.5rem; }
          .clients .who { max-width: 100%; }
          tbody th .minor:not(.url) { white-space: normal; }
          .cards tbody tr.failing { border-left: 4px solid var(--bad); }
          tr.failing > :first-child { box-shadow: none; }
          .cards tbody tr:not(.note) > td.actions { flex: 0 1 auto; }
          .cards tbody tr:not(.note) { align-items: center; }
          .cards td.actions { display: flex; flex-wrap: wrap; gap: .4rem; justify-content: flex-start; padding-top: .4rem; }
          td.actions > * { margin: 0; }
          td.actions .button { padding: .3rem .6rem; font-size: .8125rem; }
          .scopes li { overflow-wrap: anywhere; }
          .card { margin: 1rem; padding: 1.5rem; }
          .summary dl { gap: .75rem 1.5rem; }
          section + section { margin-top: 1.25rem; }
          h2 { margin-bottom: .5rem; }
        }
        @media (prefers-reduced-motion: no-preference) {
          .chip.busy::before { animation: breathe 1.4s ease-in-out infinite alternate; }
          @keyframes breathe { from { opacity: .3; } to { opacity: 1; } }
        }

        """

    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2f4a9a"/>\
        <circle cx="12" cy="16" r="4.5" fill="none" stroke="#fff" stroke-width="3"/>\
        <path d="M16.5 16H26M22.5 16v4.5" stroke="#fff" stroke-width="3" stroke-linecap="round" fill="none"/></svg>

        """
}
