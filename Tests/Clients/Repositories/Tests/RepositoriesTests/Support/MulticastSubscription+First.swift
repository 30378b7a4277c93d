import Multicast

extension MulticastSubscription where Failure == Never {
  /// Returns the next `count` elements.
  func first(_ count: Int) async -> [Element] {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }

  /// Waits for an element that meets a condition.
  func reaches(_ isWanted: (Element) -> Bool) async {
    for await element in self where isWanted(element) { return }
  }
}
