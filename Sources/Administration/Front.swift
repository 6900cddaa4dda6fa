import HTTPMessage
import HTTPServer
import WireText

/// A server between browsers and the admin port, at the address `admin.url`. It may strip the address's path, and it may
/// write another Host.
struct Front: Sendable {
    /// `https://proxy.example.com/heimdallr`, without a slash at its end.
    let url: String
    /// `https://proxy.example.com`, as browsers write it.
    let origin: String
    /// `/heimdallr`; empty without a path.
    let path: String
    let host: Authority.Host
    private let scheme: Scheme

    init?(url: String) {
        guard let parts = try? WebURL(url) else { return nil }
        (self.url, origin, path) = (url, parts.origin, String(parts.path))
        (host, scheme) = (parts.authority.host, parts.scheme)
    }

    /// Returns the request as the routes know it: without the address's path, if the front has not stripped it.
    func inside(_ request: ServerRequest) -> ServerRequest {
        guard !path.isEmpty, request.path == path || request.path.hasPrefix(path + "/") else { return request }
        var request = request
        request.path = request.path.count == path.count ? "/" : String(request.path.dropFirst(path.count))
        return request
    }

    /// Returns the answer with the address's path before every path of ours. Cookies are for https alone, if the address is.
    func outside(_ response: ServerResponse) -> ServerResponse {
        var response = response
        if scheme == .https {
            for index in response.fields.indices where response.fields[index].name == "Set-Cookie" {
                let isSecure = response.fields[index].value.hasSuffix("; Secure")
                if !isSecure { response.fields[index].value += "; Secure" }
            }
        }
        guard !path.isEmpty else { return response }
        for index in response.fields.indices {
            switch response.fields[index].name {
            case "Location" where response.fields[index].value.hasPrefix("/"):
                response.fields[index].value = path + response.fields[index].value
            case "Set-Cookie":
                response.fields[index].value = response.fields[index].value.replacing(
                    "; Path=/;", with: "; Path=\(path)/;")
            default: continue
            }
        }
        guard response.value("Content-Type")?.hasPrefix("text/html") == true, case .whole(let body) = response.body
        else {
            return response
        }
        // Text of a page has no quotation mark that is not escaped: see `HTML`.
        var html = String(decoding: body, as: UTF8.self)
        for start in ["href=\"", "src=\"", "action=\"", "content=\"0; url="] {
            html = html.replacing(start + "/", with: start + path + "/")
        }
        response.body = .whole(Array(html.utf8))
        return response
    }

    /// Returns the address of a front that no setting names, if the request shows one: a browser calls the page of
    /// `Referer` or `Origin` this site, but Host names another one.
    /// - Returns: the address to write as `admin.url`.
    static func unknown(before request: ServerRequest) -> String? {
        guard request.sites == ["same-origin"], let host = request.hosts.first,
            let text = request.value("Referer") ?? request.value("Origin"), let page = try? WebURL(text),
            !LoginAddresses.isSame(host, page)
        else { return nil }
        var path = page.path
        if let login = path.firstRange(of: "/login/") { path = path[..<login.lowerBound] }
        while path.hasSuffix("/") { path = path.dropLast() }
        return "\(page.start)\(path)"
    }

    static func advice(_ url: String) -> String {
        "Write `url: \(ForeignText.printable(url))` under `admin` into the configuration, and restart the proxy."
    }
}
