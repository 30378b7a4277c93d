extension AsyncSequence where Failure == Never, Element: Sendable {
  /// Returns the first `count` elements, or fewer if the sequence ends earlier.
  ///
  /// - Parameter count: The number of elements. If it is 0 or negative, no element is read.
  package func first(_ count: Int) async -> [Element] {
    guard count > 0 else { return [] }
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }

  /// Waits for an element that satisfies a condition, or for the end of the sequence.
  package func reaches(_ isWanted: (Element) -> Bool) async {
    for await element in self where isWanted(element) { return }
  }
}
