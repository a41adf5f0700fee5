/* Ridgeline for other languages: train convolutional networks and measure where time goes.
 *
 * Requests and results that have structure are JSON texts in UTF-8, with the names of the command
 * line's options and of its --json documents; numbers in bulk are plain arrays. Every function that
 * can fail gives a code and leaves a text for rl_last_error(). No C++ exception leaves the library.
 *
 * Functions may be called from several threads; a handle serves one thread at a time, and a second
 * one gets an error. A process that was forked from one that had used the library gets errors:
 * start such processes with exec.
 */
#ifndef RIDGELINE_H
#define RIDGELINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a function changes or goes; functions that are added leave it as it is. */
#define RL_ABI 2

#if defined(__GNUC__)
#define RL_API __attribute__((visibility("default")))
#else
#define RL_API
#endif

typedef enum rl_code {
  RL_OK = 0,
  RL_FAILURE = 1,      /* the run failed */
  RL_BAD_INPUT = 2,    /* wrong use or wrong input */
  RL_LACKS_MEMORY = 3, /* the work does not fit into this machine's memory */
  RL_BAD_HANDLE = 4    /* in use by another thread, or of another process */
} rl_code;

RL_API int rl_abi(void);
RL_API const char* rl_version(void); /* "0.1.0 (a04368e)" */
/* Of the last function that failed in this thread; valid until the next one fails. */
RL_API const char* rl_last_error(void);
/* Texts that functions give through `char**` are the caller's. */
RL_API void rl_free(char* text);

/* What a call tells while it works. Any function may be null. They are called from the thread that
 * made the call, and must not throw or call the library. */
typedef struct rl_listener {
  void* context;
  void (*note)(void* context, const char* line);
  void (*progress)(void* context, int64_t done, int64_t total, const char* what);
  void (*epoch)(void* context, const char* json); /* of a training */
  int (*go_on)(void* context);                    /* 0 ends the call early, with what it has */
} rl_listener;

/* Calls of the laboratory. Keys of requests are the names of options with underscores
 * (request.cpp). */
RL_API int rl_models(char** result);
/* {"device": "cuda:0"}, or {"device": "cpu", "reason": why there is no GPU to use}. */
RL_API int rl_device(char** result);
RL_API int rl_describe(const char* request, char** result);
RL_API int rl_plan(const char* request, char** text);
RL_API int rl_network_figure(const char* request, char** svg);
RL_API int rl_bench(const char* request, const rl_listener* listener, char** result);
RL_API int rl_profile(const char* request, const rl_listener* listener, char** result);
RL_API int rl_compare(const char* request, char** result);
RL_API int rl_roofline(const char* request, const rl_listener* listener, char** result);
RL_API int rl_studies(char** result);
RL_API int rl_study(const char* request, const rl_listener* listener, char** result);
RL_API int rl_report(const char* request, const rl_listener* listener, char** result);
/* Tables and figures (as SVG) of a store. */
RL_API int rl_exhibits(const char* request, char** result);
/* Writes a drawing as the end of the path says: .svg, or by rsvg-convert .png and .pdf. */
RL_API int rl_picture(const char* svg, const char* path);

/* A network whose ONNX file is in memory. While it is open, rl_network_model() is the name of a
 * model in requests. */
typedef struct rl_network rl_network;
RL_API int rl_network_open(const char* name, const void* bytes, size_t size, rl_network** network);
RL_API const char* rl_network_model(const rl_network* network);
RL_API void rl_network_close(rl_network* network);

/* Labelled images: count x channels x height x width. They are copied. */
typedef struct rl_images {
  const uint8_t* pixels;
  const int32_t* labels;
  int64_t count;
} rl_images;
typedef struct rl_shape {
  int64_t channels, height, width, classes;
} rl_shape;
/* Of the dataset that the request names, or where `train` is given of that. `test` may be null. */
RL_API int rl_train(const char* request, const rl_images* train, const rl_images* test,
                    const rl_shape* shape, const rl_listener* listener, char** result);
/* The order of the samples in an epoch (from 0) of a training with this seed. */
RL_API int rl_epoch_order(uint64_t seed, int64_t epoch, int32_t* order, int64_t count);

/* Single training steps. Images are uint8 pixels, or elements with "input": "tensor". Elements are
 * float32, or float64 with "precision": "fp64", which the backend "reference" alone has. */
typedef struct rl_session rl_session;
RL_API int rl_session_open(const char* request, rl_session** session);
RL_API int rl_session_describe(rl_session* session, char** result);
RL_API int rl_session_plan(rl_session* session, char** text);
/* A rate below 0 stands for the request's. */
RL_API int rl_session_step(rl_session* session, const void* images, size_t image_bytes,
                           const int32_t* labels, int64_t rows, double learning_rate, double* loss);
/* Room for `count` = images x classes numbers. */
RL_API int rl_session_logits(rl_session* session, const void* images, size_t image_bytes,
                             double* logits, int64_t count);
/* All elements of a weight, of a running statistic, or with "keep_gradients" of "NAME.grad". */
RL_API int rl_session_read(rl_session* session, const char* name, void* values, size_t bytes);
RL_API int rl_session_write(rl_session* session, const char* name, const void* values,
                            size_t bytes);
/* Where they lie: to be read and written between calls, until the session is closed. Null where the
 * host cannot reach the device's memory. */
RL_API int rl_session_memory(rl_session* session, const char* name, void** values, size_t* bytes);
/* Fails while another thread uses it. */
RL_API int rl_session_close(rl_session* session);

/* Columns of a store's table: "runs", "samples", "epochs", "steps", "readings", "memory",
 * "findings", of the runs that a filter such as "backend=native,batch=64" or "last" names; null or
 * empty: all. */
typedef struct rl_frame rl_frame;
typedef enum rl_type { RL_INTEGER = 0, RL_REAL = 1, RL_TEXT = 2 } rl_type;
typedef struct rl_column {
  const char* name;
  const char* unit;       /* "s"; empty: none */
  int type;               /* rl_type */
  const void* values;     /* int64_t, double, or the bytes of all texts */
  const int64_t* offsets; /* of texts: rows + 1 of them; else null */
  const uint8_t* valid;   /* one for each row; 0: not known */
} rl_column;
RL_API int rl_store_table(const char* path, const char* table, const char* filter,
                          rl_frame** frame);
RL_API int64_t rl_frame_rows(const rl_frame* frame);
RL_API int64_t rl_frame_columns(const rl_frame* frame);
/* Valid until the frame is closed. */
RL_API int rl_frame_column(const rl_frame* frame, int64_t index, rl_column* column);
RL_API void rl_frame_close(rl_frame* frame);

#ifdef __cplusplus
}
#endif

#endif
