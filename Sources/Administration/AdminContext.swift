import HTTPServer

/// What a request brings beside itself.
struct AdminContext: Sendable {
    /// What stood in the path where the route has names.
    let parameters: Router.Parameters
    /// Another site's page, or a link somewhere else, led here: what changes anything asks first.
    var isForeign = false
}
