/// The capabilities of a terminal, as far as the environment describes them.
package struct TerminalCapabilities: Hashable, Sendable {
  /// The number of colors that the terminal has and the user wants.
  package var colors: ColorDepth
  /// Whether the terminal accepts marks for the start and the end of a frame, so that it never shows a partial frame.
  package var synchronizesOutput: Bool

  package init(colors: ColorDepth, synchronizesOutput: Bool) {
    self.colors = colors
    self.synchronizesOutput = synchronizesOutput
  }

  /// Reads `TERM`, `COLORTERM` and `NO_COLOR`.
  ///
  /// Returns `nil` if `TERM` isn't set, or names a terminal that can't position its cursor. Then only lines can be
  /// printed.
  package init?(environment: [String: String]) {
    let type = environment["TERM"] ?? ""
    guard !["", "dumb", "unknown", "network"].contains(type) else { return nil }
    colors =
      if !(environment["NO_COLOR"] ?? "").isEmpty {
        .none
      } else if ["truecolor", "24bit"].contains(environment["COLORTERM"]) || type.hasSuffix("-direct") {
        .direct
      } else if type.hasSuffix("-256color") || ["alacritty", "foot", "wezterm"].contains(type) {
        .indexed
      } else if type.hasPrefix("vt") || type.hasSuffix("-mono") || type.hasSuffix("-m") {
        .none
      } else {
        .basic
      }
    // Terminals that don't support the marks usually ignore them. The terminals excluded here are old or simple, and
    // may print them instead.
    synchronizesOutput = !type.hasPrefix("vt") && !["linux", "ansi", "cons25", "sun"].contains(type)
  }
}
