import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Skips the test if the GraphQL server isn't available, unless it is required; then the test fails.
  static var requiresBFF: Self {
    .enabled(if: BFFServer.isAvailable || BFFServer.isRequired, "\(BFFServer.requirement)")
  }
}
