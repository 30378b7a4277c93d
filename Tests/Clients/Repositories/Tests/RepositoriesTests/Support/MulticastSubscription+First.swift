import Multicast

extension MulticastSubscription where Failure == Never {
  /// The next elements, as many as are asked for.
  func first(_ count: Int) async -> [Element] {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }

  /// Reads until an element is there that fulfils a condition.
  func reaches(_ isWanted: (Element) -> Bool) async {
    for await element in self where isWanted(element) { return }
  }
}
