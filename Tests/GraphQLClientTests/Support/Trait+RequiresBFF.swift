import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Runs the test only where the GraphQL server can run; fails it there instead if the server is required.
  static var requiresBFF: Self {
    .enabled(if: BFFServer.isAvailable || BFFServer.isRequired, "\(BFFServer.requirement)")
  }
}
