package import Multicast

extension MulticastStream {
  /// Returns the first `count` elements, or fewer if the stream finishes.
  package func first(_ count: Int) async -> [Element] where Failure == Never {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }
}
