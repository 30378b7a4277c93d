/// The key of a repository with a single value, such as the settings of an app.
///
/// A ``LocalRepository`` with this key stores its value as the only one of its collection, without an id. Calls pass
/// ``only``, as in `update(.only) { $0.isDark = true }`.
public struct OnlyKey: RepositoryKey {
  /// The only instance.
  public static let only = OnlyKey()

  /// The text `only`, for contexts that need an id.
  public var storeID: String { "only" }

  private init() {}

  /// Creates the key, or returns `nil` if the id isn't its ``storeID``.
  public init?(storeID: String) {
    guard storeID == Self.only.storeID else { return nil }
  }
}
