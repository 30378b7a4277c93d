/// The key of a repository that has one value, such as the settings of an app.
///
/// A ``LocalRepository`` with this key keeps its value as the only one of the collection, without an id. Its calls take
/// ``only``, as in `update(.only) { $0.isDark = true }`.
public struct OnlyKey: RepositoryKey {
  /// The only key there is.
  public static let only = OnlyKey()

  /// The text `only`, for what needs an id.
  public var storeID: String { "only" }

  private init() {}

  /// Creates the key, or returns `nil` if the id isn't its ``storeID``.
  public init?(storeID: String) {
    guard storeID == Self.only.storeID else { return nil }
  }
}
