import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Skips the test unless the environment names what the GraphQL server, `BFFServer`, needs.
  static var requiresBFF: Self {
    .enabled(if: BFFServer.isRequested, "\(BFFServer.requirement)")
  }
}
