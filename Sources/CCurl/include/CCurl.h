// The part of libcurl's interface that CurlTransport uses. It is loaded at run time from the library that Foundation
// links, so the build of this package needs neither libcurl's headers nor a linker flag.
//
// Names and numbers are those of libcurl's curl.h and multi.h, whose binary interface has been stable since version
// 7.16 (2006): https://curl.se/libcurl/abi.html

#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct CCurlEasy CCurlEasy;
typedef struct CCurlMulti CCurlMulti;
typedef struct CCurlList CCurlList;

typedef size_t (*CCurlDataCallback)(char *_Nonnull bytes, size_t size, size_t count, void *_Nullable context);

/// Loads and initializes libcurl 7.68 or newer.
///
/// Call it once, before any other function of this header. If it returns false, no other function may be called.
bool CCurlOpen(void);

/// Returns libcurl's version, such as `7.88.1`.
const char *_Nonnull CCurlVersion(void);

CCurlEasy *_Nullable CCurlEasyMake(void);
void CCurlEasyFree(CCurlEasy *_Nonnull easy);

/// Sets the options that all requests share: no signals, only the protocols http and https, and all compressions that
/// libcurl supports. Redirections are not followed, which is libcurl's default.
void CCurlEasySetDefaults(CCurlEasy *_Nonnull easy);
/// Prevents libcurl from sending the request more than once.
///
/// By default, if a reused connection is closed before the first byte of a response, libcurl sends the request again
/// over a new connection, although the server may have processed the first one.
///
/// `count` receives the number of attempts to send the request. It must stay valid until the transfer ends.
void CCurlEasySendOnce(CCurlEasy *_Nonnull easy, int *_Nonnull count);
/// Sets the longest time that an attempt to connect may take.
void CCurlEasySetConnectTimeout(CCurlEasy *_Nonnull easy, long milliseconds);
/// Sets the request. `url` and `method` are copied; `body` and `fields` must stay valid until the transfer ends.
bool CCurlEasySetRequest(
    CCurlEasy *_Nonnull easy, const char *_Nonnull url, const char *_Nonnull method, const void *_Nullable body,
    long long bodyLength, CCurlList *_Nullable fields);
void CCurlEasySetCallbacks(
    CCurlEasy *_Nonnull easy, CCurlDataCallback _Nonnull header, CCurlDataCallback _Nonnull body,
    void *_Nullable context);
/// Sets the buffer for error messages. It has `CCurlErrorSize` bytes, and must stay valid until the handle is freed.
void CCurlEasySetErrorBuffer(CCurlEasy *_Nonnull easy, char *_Nonnull buffer);
enum { CCurlErrorSize = 256 };
/// Returns the status of the last response whose head has arrived; 0 if there is none.
long CCurlEasyStatus(CCurlEasy *_Nonnull easy);

/// Appends a copy of `field` and returns the list, or null if there is no memory.
CCurlList *_Nullable CCurlListAppend(CCurlList *_Nullable list, const char *_Nonnull field);
void CCurlListFree(CCurlList *_Nullable list);

CCurlMulti *_Nullable CCurlMultiMake(void);
void CCurlMultiFree(CCurlMulti *_Nonnull multi);
bool CCurlMultiAdd(CCurlMulti *_Nonnull multi, CCurlEasy *_Nonnull easy);
void CCurlMultiRemove(CCurlMulti *_Nonnull multi, CCurlEasy *_Nonnull easy);
/// Does all work that is possible without waiting, and calls the callbacks. Returns libcurl's code, which is 0 on
/// success.
int CCurlMultiPerform(CCurlMulti *_Nonnull multi);
/// Waits until there is work to do, `CCurlMultiWake` is called, or `milliseconds` have passed.
int CCurlMultiWait(CCurlMulti *_Nonnull multi, int milliseconds);
/// Ends the current wait, or the next one. This is the only function that may be called while another thread uses the
/// handle.
void CCurlMultiWake(CCurlMulti *_Nonnull multi);
/// Returns whether a transfer has ended, and sets `result` to its code, which is 0 if it is complete.
bool CCurlMultiTakeResult(CCurlMulti *_Nonnull multi, int *_Nonnull result);

#endif
