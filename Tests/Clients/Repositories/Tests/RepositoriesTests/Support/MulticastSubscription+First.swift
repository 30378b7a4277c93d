import Multicast

extension MulticastSubscription where Failure == Never {
  /// Returns the next `count` elements, or fewer if the subscription ends earlier.
  func first(_ count: Int) async -> [Element] {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }

  /// Waits for an element that satisfies a condition, or for the end of the subscription.
  func reaches(_ isWanted: (Element) -> Bool) async {
    for await element in self where isWanted(element) { return }
  }
}
