import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Skips the test if the GraphQL server isn't available, unless the server is required.
  ///
  /// If a required server isn't available, the test runs and fails.
  static var requiresBFF: Self {
    .enabled(if: BFFServer.isRequested, "\(BFFServer.requirement)")
  }
}
