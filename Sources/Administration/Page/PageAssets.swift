/// What every page loads, from the files beside this one. Fonts are the system's; nothing is fetched from anywhere.
enum PageAssets {
    /// `/page.css`.
    static let style = String(decoding: PackageResources.PageStyle_css, as: UTF8.self)
    /// `/page.js`: what makes the page live. Without it the page can be read, and people can sign in (the implicit grant
    /// excepted: only a script sees what stands behind `#`).
    static let script = String(decoding: PackageResources.PageScript_js, as: UTF8.self)
    /// `/icon.svg`.
    static let icon = String(decoding: PackageResources.PageIcon_svg, as: UTF8.self)
}
