/// Descriptions of keys in editors: the first sentence of the row in docs/configuration.md. `.ci/reference.py` writes
/// them, and `ReferenceTests` compares them.
enum KeyDescriptions {
    /// By the key's path: `clients.*.client_id`.
    static var all: [String: String] {
        var all: [String: String] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "\t", maxSplits: 1)
            if parts.count == 2 { all[String(parts[0])] = String(parts[1]) }
        }
        return all
    }

    private static let text = #"""
        secret.file	Path of a file that holds the secret.
        secret.env	Name of an environment variable that holds it.
        secret.command	List: a program that prints it, and its arguments.
        secret.refresh	With `command`: how often it runs. 1 s to 24 h.
        listener.unix	Absolute path of a Unix socket.
        listener.mode	Its permissions, in octal.
        listener.address	Host and port, in place of `unix`.
        listener.tls	TLS at `address`.
        listener.tls.cert_file	PEM of the listener's certificate, with those that lead to its issuer behind it.
        listener.tls.key_file	PEM of its key: RSA, P-256, P-384 or Ed25519, without a passphrase.
        listener.tls.client_ca_file	PEM of authorities.
        proxy.listen	Listener, or a list of them.
        proxy.threads	Event loops, 1 to 256.
        proxy.open	Whether listeners may be reachable from other machines without `users` and without `client_ca_file`.
        proxy.users	Mapping of names to secrets.
        proxy.unmatched	Requests for hosts that no upstream names: `reject` (403) or `forward` (unsigned).
        proxy.connect	What `CONNECT` for TLS gets: `reject` (403, which says to use `http://`), or `tunnel` to the places in `tunnels`.
        proxy.tunnels	With `connect: tunnel`: `HOST:PORT` pairs that may be reached, `"*"` for any public address.
        proxy.intercept	Default of `intercept` at upstreams with an exact host.
        proxy.private_networks	Address blocks (`10.0.0.0/8`, `fd00::/8`) that `unmatched: forward` and `tunnels: ["*"]` may reach; without, they never reach loopback, link-local, private, multicast or metadata addresses, nor an address of this machine's own interfaces, also when those change.
        proxy.header_timeout	The whole request head must arrive in this time, else 408.
        proxy.idle_timeout	Connections kept alive, and bodies that stall.
        proxy.max_header_bytes	Larger request heads get 431. 1 KiB to 16 MiB.
        proxy.max_body_bytes	Larger request bodies get 413.
        proxy.max_connections	Connections of programs at once.
        proxy.drain_timeout	Time after SIGTERM for requests in flight.
        proxy.drain_delay	After SIGTERM, before that: not ready any more, and serving on, so that load balancers notice.
        admin.listen	Listener, a host and port.
        admin.socket	Path of the admin socket, at most 107 bytes.
        admin.hosts	Further names, without ports, that the page, `/status` and `/events` answer to, beside `localhost` and addresses.
        admin.token	Secret of at least 16 octets; a shorter one is an error at start.
        admin.quitquitquit	Whether `POST /quitquitquit` ends the proxy, as SIGTERM does; every client with access to `/status` may do that.
        log.level	`trace`, `debug`, `info`, `notice`, `warning`, `error`: lines below it are not written.
        log.format	`text` or `json`.
        log.access	One line per request, at every `level`.
        audit.file	The file that lines are appended to.
        tls.ca_file	PEM file with further trust anchors, added to the system's, for every outgoing connection.
        store.kind	Where tokens are kept; without the section, in memory.
        store.directory	with `kind: file`: where the records are; made, mode 0700, when it is missing; refused when others may read it.
        store.connection	with `kind: postgres`: a secret, libpq's connection string, as keywords or as a URI.
        store.space	with `kind: postgres`: one installation among several in one database.
        store.key	with `kind: file` or `postgres`: a secret of 32 bytes, raw or base64, as `heimdallr-proxy keygen` makes it.
        store.keys	with `kind: postgres`, in the place of `key`, while keys change: `[NEW, OLD]`.
        interception.directory	Folder for the sealed certificates and the public `roots.pem`, made if it is missing.
        interception.key	Secret: the key that seals them.
        hooks.webhook	URL that each event is sent to by `POST`, as JSON.
        hooks.command	List: a program, by its absolute path or searched in `PATH`, and its arguments.
        hooks.allow_plaintext	Whether `webhook` may be an `http://` URL.
        tracing.otlp	URL of a collector that takes OTLP over HTTP.
        tracing.sample	How many of the traces that begin here are recorded: from 0, none, to 1, all.
        tracing.service_name	What the collector calls this proxy.
        tracing.headers	Names and secrets: fields of each request to the collector.
        tracing.allow_plaintext	Whether `headers` may go over `http://`.
        tracing.tls	TLS towards the collector; files in PEM.
        tracing.tls.ca_file	Trust anchors that replace the system's here.
        tracing.tls.cert_file	Client certificate and its key.
        tracing.tls.key_file	Client certificate and its key.
        clients.*.grant_type	See below.
        clients.*.issuer	The authorization server's name for itself.
        clients.*.token_endpoint	URL that issues tokens.
        clients.*.authorization_endpoint	URL that a person's browser is sent to, for `authorization_code` and `implicit`.
        clients.*.par	Whether the request of a sign-in is pushed to the server before the browser goes (RFC 9126): `auto` where the server's metadata offers it, and never without where the metadata requires it; `off`; `required`.
        clients.*.pushed_authorization_request_endpoint	URL that requests are pushed to; used with `par: auto` too.
        clients.*.device_authorization_endpoint	URL that hands out codes, for `device_code`.
        clients.*.revocation_endpoint	URL that revokes tokens (RFC 7009), for `heimdallr-proxy logout`.
        clients.*.redirect_uri	Where the server sends the browser back to: https, http on loopback, or a private scheme such as `com.example.app:/oauth` (then `login --paste`).
        clients.*.client_id	Not with `jwt-bearer`, `saml2-bearer` and `token-exchange` where nothing else of the client's authentication is written: then what is shown says who asks.
        clients.*.client_secret	Secret.
        clients.*.token_endpoint_auth_method	`client_secret_basic`, `client_secret_post`, `client_secret_jwt`, `private_key_jwt`, `tls_client_auth`, `self_signed_tls_client_auth` or `none`: who the client is.
        clients.*.client_key	For `private_key_jwt`: a secret, PEM (PKCS#8, PKCS#1 or SEC1, without a passphrase) or a JWK.
        clients.*.token_endpoint_auth_signing_alg	`RS256`, `PS256`, `ES256`, `ES384` or `EdDSA`; a JWK's own `alg`, else `RS256` for RSA.
        clients.*.client_key_id	`kid` of the assertion.
        clients.*.client_certificate	`{file: PATH}`: the key's certificate in PEM, for servers that know the key by its digest (`x5t#S256`).
        clients.*.client_certificate.file	Path of the certificate.
        clients.*.client_assertion_audience	The assertion's audience (`aud`), the same at every endpoint of the server: `token_endpoint` (the URL of that endpoint), `issuer` (as configured), or any text of printable ASCII.
        clients.*.client_assertion	A secret: an assertion that another program signs and renews.
        clients.*.certificate_bound	The tokens are bound to the certificate of `tls` (RFC 8705, section 3): the upstreams of this client are shown it, too.
        clients.*.basic_encoding	How identifier and secret are encoded for Basic: `form` (RFC 6749, section 2.3.1), `percent` or `raw`.
        clients.*.scope	List, or a string with spaces.
        clients.*.resource	List of absolute URIs: one `resource` parameter each (RFC 8707).
        clients.*.audience	Whom the token shall be for: one `audience` parameter, as some servers want it.
        clients.*.authorization_details	List of mappings, each with a `type` (RFC 9396), sent as JSON with token requests, refreshes and sign-ins.
        clients.*.authorization_details.type	What kind of details they are.
        clients.*.assertion	For `jwt-bearer` and `saml2-bearer`: a secret that another program renews, read for each token request; for `jwt-bearer` also one that is signed here.
        clients.*.subject_token	For `token-exchange`: on whose behalf; a secret, read for each token request, or `caller`.
        clients.*.subject_token_type	For `token-exchange`: on whose behalf; a secret, read for each token request, or `caller`.
        clients.*.actor_token	For `token-exchange`: the acting party, if it differs from the subject.
        clients.*.actor_token_type	For `token-exchange`: the acting party, if it differs from the subject.
        clients.*.requested_token_type	For `token-exchange`: what the new token shall be.
        clients.*.key	For `github_app`: the app's private key, a secret in PEM; the installation's number.
        clients.*.installation	For `github_app`: the app's private key, a secret in PEM; the installation's number.
        clients.*.api	For `github_app`: of a GitHub of one's own `https://HOST/api/v3`.
        clients.*.repositories	For `github_app`: a list of names without their owner, and a mapping such as `contents: read`.
        clients.*.permissions	For `github_app`: a list of names without their owner, and a mapping such as `contents: read`.
        clients.*.params	Mapping of further parameters of token and authorization requests.
        clients.*.headers	Mapping of further request headers.
        clients.*.username	For `grant_type: password`; `password` is a secret.
        clients.*.password	For `grant_type: password`; `password` is a secret.
        clients.*.refresh_token	For `grant_type: refresh_token`: the one to begin with; a secret.
        clients.*.default_expires_in	Lifetime of a token whose answer names none.
        clients.*.default_token_type	Type of a token whose answer names none; without it, that is an error.
        clients.*.treat_as_bearer	Further `token_type` values to take for `Bearer`.
        clients.*.refresh_before	How long before its expiry a token is renewed; at most half its lifetime.
        clients.*.timeout	One token request, from connecting to the last byte.
        clients.*.proxy	Proxy for token requests: `http://host:port`, `https://host:port`, `environment` (`https_proxy` and its like) or `none`.
        clients.*.tls	TLS towards the authorization server; files in PEM.
        clients.*.tls.ca_file	Trust anchors that replace the system's here.
        clients.*.tls.cert_file	Client certificate and its key.
        clients.*.tls.key_file	Client certificate and its key.
        clients.*.dpop	`true`, or `{key: {file: PATH}, algorithm: ES256}`: tokens are bound to a key.
        clients.*.dpop.key	A secret: a key of your own, PEM or JWK.
        clients.*.dpop.algorithm	`RS256`, `PS256`, `ES256`, `ES384` or `EdDSA`.
        clients.*.allow_deprecated	The password and implicit grants need `true`.
        clients.*.allow_plaintext	An `http://` endpoint needs `true`, one of the issuer's metadata too.
        clients.*.labels	Mapping of names to values for your own use.
        clients.*.assertion.key	A secret: PEM (PKCS#8, PKCS#1 or SEC1, without a passphrase), a JWK, or the JSON file of a Google service account.
        clients.*.assertion.key_id	`kid`.
        clients.*.assertion.algorithm	`RS256`, `PS256`, `ES256`, `ES384` or `EdDSA`.
        clients.*.assertion.issuer	`iss`; by default the `client_id`, or the mail address of a Google service account.
        clients.*.assertion.subject	`sub`: in whose name.
        clients.*.assertion.audience	`aud`: `token_endpoint`, `issuer` or any text.
        clients.*.assertion.scope	`scope` within the assertion, as Google wants it.
        clients.*.assertion.claims	Mapping of further claims, as JSON.
        clients.*.assertion.expires_in	At most an hour.
        upstreams.host	`api.example.com`, or `"*.example.com"` for one or more labels in front; optional port.
        upstreams.paths	List of prefixes; whole segments, so `/v1` covers `/v1` and `/v1/x`, not `/v10`.
        upstreams.methods	List, in capitals.
        upstreams.callers	Who may use it: `users` (of `proxy.users`), `uids` (of programs on a Unix socket), `listeners` (as in `proxy.listen`; the upstream's own always fits), `certificates` (of clients at listeners with `client_ca_file`).
        upstreams.callers.users	List of names out of `proxy.users`.
        upstreams.callers.uids	List of numbers of users whose programs call at a Unix socket.
        upstreams.callers.listeners	List of listeners out of `proxy.listen`.
        upstreams.callers.certificates	List of names, one of which the client's certificate has: its subject as `openssl x509 -noout -subject -nameopt RFC2253` prints it (`CN=reports,O=Example`), or an alternative name, `DNS:…`, `URI:…` or `email:…`.
        upstreams.client	Name of the client whose token is put on; without it and without `inject`, requests are forwarded unsigned.
        upstreams.url	Where requests go.
        upstreams.rewrite	Whether redirects and cookies of the upstream come home: below.
        upstreams.rewrite.host	Which `Host` the upstream is sent: the `url`'s authority (`upstream`), or the program's own (`keep`).
        upstreams.inject	What goes on the request, and where: one entry or a list of up to 8.
        upstreams.require_placeholder	Only requests in which the program put this text where a credential goes get what `inject` says, in its place: below.
        upstreams.on_existing	What happens to what the program sent itself in a place of `inject`, for each place: `replace` it, `keep` it, or `reject` the request (403).
        upstreams.on_unauthorized	A 401 that may be the token's fault: `replay` the request once with a new token, or let it `pass`; one new token is fetched either way, and other upstreams go on with the old one until it is there.
        upstreams.max_replay_bytes	Longest request body that is replayed, and longest that is signed; a longer one gets the 401, or 413.
        upstreams.set_headers	Mapping of fields that each request gets, in place of those that the program sent: below.
        upstreams.remove_headers	Names of the program's fields that the upstream does not get.
        upstreams.token_wait	How long a request waits for a token; then 503.
        upstreams.allow_plaintext	A token or secret over `http://` needs `true`.
        upstreams.allow_deprecated	A token in the query needs `true`.
        upstreams.listen	A separate listener, where every request is for this upstream: a base URL for programs that know no proxies.
        upstreams.hosts	With `listen`: further `Host` values that it answers to, beside loopback and its own address.
        upstreams.browsers	Whether requests that a browser sent get through at `listen`, and where the program's port is redirected to the proxy.
        upstreams.intercept	Whether the proxy opens the TLS of programs that ask for this host by `https://`, so that they get the token (more).
        upstreams.connect_timeout	To the upstream, TLS included.
        upstreams.response_timeout	Until the response head; may be `off`.
        upstreams.idle_timeout	Between two pieces of the response; may be `off`.
        upstreams.max_connections	Connections to the upstream at once.
        upstreams.max_connection_age	A connection is not used again after this time.
        upstreams.http2	Whether HTTP/2 is offered.
        upstreams.proxy	As for clients, for this leg.
        upstreams.tls	TLS towards the upstream; files in PEM.
        upstreams.tls.ca_file	Trust anchors that replace the system's here.
        upstreams.tls.cert_file	Client certificate and its key.
        upstreams.tls.key_file	Client certificate and its key.
        upstreams.tls.server_name	Name to be sent and checked instead of the host's.
        upstreams.inject.header	Name of the field that the token or the `value` goes into.
        upstreams.inject.scheme	Word in front of it; `""` for none.
        upstreams.inject.query	Name of the parameter that it goes into.
        upstreams.inject.value	Secret: a fixed key in place of the client's token.
        upstreams.inject.basic	HTTP Basic in `Authorization`.
        upstreams.inject.basic.username	User name: a text or a secret.
        upstreams.inject.basic.password	Secret.
        upstreams.inject.sigv4	A signature for AWS; its keys are below.
        upstreams.inject.sigv4.region	As in the service's documentation: `eu-central-1`, `s3`.
        upstreams.inject.sigv4.service	As in the service's documentation: `eu-central-1`, `s3`.
        upstreams.inject.sigv4.access_key_id	The key; the first may be a text or a secret, the second is a secret.
        upstreams.inject.sigv4.secret_access_key	The key; the first may be a text or a secret, the second is a secret.
        upstreams.inject.sigv4.session_token	Secret, for credentials that don't last.
        upstreams.inject.sigv4.credentials	`container`: those that ECS or EKS Pod Identity hand out, at `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `…_FULL_URI` with `AWS_CONTAINER_AUTHORIZATION_TOKEN` or `…_TOKEN_FILE`.
        upstreams.inject.sigv4.credentials.access_key_id	The same keys, in a separate mapping.
        upstreams.inject.sigv4.credentials.secret_access_key	The same keys, in a separate mapping.
        upstreams.inject.sigv4.credentials.session_token	The same keys, in a separate mapping.
        """#
}
