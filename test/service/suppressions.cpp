// Suppressions: a process that ends while its streams are at work leaves what OpenSSL allocated for their threads.

#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __lsan_default_suppressions() { return "leak:CRYPTO_zalloc"; }
#endif
