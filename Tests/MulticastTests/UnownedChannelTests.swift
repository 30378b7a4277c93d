import Multicast
import Testing

@Suite(.timeLimit(.minutes(15))) struct UnownedChannelTests {
  @Test func `A stream that is first iterated after a send delivers the replay, then every later element`() async {
    let (channel, stream) = UnownedChannel<Int>.makeStream(replay: 1)
    channel.send(1)
    var iterator = stream.makeAsyncIterator()
    channel.send(2)
    #expect(await iterator.next() == 1)
    #expect(await iterator.next() == 2)
  }

  @Test func `An unowned channel is released with its last stream, subscription or iterator`() async {
    var pair: (channel: UnownedChannel<Int>, stream: MulticastStream<Int, Never>?) = UnownedChannel.makeStream(
      replay: 1)
    var subscription = pair.stream?.subscribe()
    pair.stream = nil
    #expect(pair.channel.isReferenced)
    var iterator = subscription?.makeAsyncIterator()
    subscription = nil
    #expect(pair.channel.isReferenced)
    pair.channel.send(1)
    #expect(await iterator?.next() == 1)
    iterator = nil
    #expect(!pair.channel.isReferenced)
    let furtherStream = pair.channel.stream
    if furtherStream != nil { Issue.record("A released channel returned a stream.") }
  }

  @Test func `Subscribers of a finished unowned channel read their backlog`() async {
    let (channel, stream) = UnownedChannel<Int>.makeStream(replay: 0)
    let subscription = stream.subscribe()
    channel.send(1)
    channel.finish()
    var received: [Int] = []
    for await element in subscription { received.append(element) }
    #expect(received == [1])
  }
}
