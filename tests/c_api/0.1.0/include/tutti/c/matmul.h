/// \file
/// Matrix products of the C API, on one GPU or the host, and after a gather: tutti/matmul.hpp and
/// tutti/all_gather_matmul.hpp have the rules for shapes, algorithms, captures and errors.
#pragma once

#include <stdint.h>

#include "tutti/c/communicator.h"
#include "tutti/c/status.h"
#include "tutti/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Which elements of a matrix are neighbours in memory: tutti::MatrixLayout.
typedef int tutti_matrix_layout_t;
enum { TUTTI_ROW_MAJOR = 0, TUTTI_COLUMN_MAJOR = 1 };
/// "row", "column"; "?" for another number.
TUTTI_API const char* tutti_matrix_layout_name(tutti_matrix_layout_t layout);
/// The inverse.
TUTTI_API tutti_status_t tutti_parse_matrix_layout(const char* name, tutti_matrix_layout_t* layout);

/// One matrix B of a product, with its output C and bias: tutti::MatmulProduct.
typedef struct tutti_matmul_product_t {
  const void* b;     ///< [k, n]
  void* c;           ///< [m, n], row-major
  const void* bias;  ///< [n]; null: none
  size_t n;
  size_t ldb;  ///< elements between rows (or columns) of B; 0: no gaps
  size_t ldc;  ///< elements between rows of C; 0: no gaps
} tutti_matmul_product_t;

/// The largest number of products of one call, the first one included.
#define TUTTI_MAX_MATMUL_PRODUCTS 8

/// Arguments of tutti_matmul().
typedef struct tutti_matmul_t {
  size_t size;
  const void* a;  ///< [m, k], row-major
  size_t m;
  size_t k;
  size_t lda;                          ///< elements between rows of A; 0: no gaps
  tutti_matmul_product_t product;      ///< the first product
  const tutti_matmul_product_t* more;  ///< further products of the same A
  size_t more_count;
  const char* algorithm;           ///< "own_matmul", "cublaslt_matmul", ...; null: chosen
  const char* tile;                ///< of own_matmul, for example "128x256"; null: chosen
  tutti_data_type_t dtype;         ///< bf16, fp16 or fp32. Default: TUTTI_BFLOAT16
  tutti_matrix_layout_t b_layout;  ///< of all B
  tutti_backend_t backend;         ///< automatic: the GPU if `a` is GPU memory, otherwise the host
  int reserved;                    ///< 0
} tutti_matmul_t;
TUTTI_STRUCT_INIT(matmul, value.dtype = TUTTI_BFLOAT16;)
/// C = A x B + bias, for each product. Enqueued in `stream`, or computed before the call returns.
TUTTI_API tutti_status_t tutti_matmul(tutti_stream_t stream, const tutti_matmul_t* call);

/// What a call runs. Free the three strings with tutti_string_free().
typedef struct tutti_matmul_plan_t {
  size_t size;
  char* algorithm;  ///< "own_matmul", "fused", ...; empty: nothing to do
  char* config;     ///< tile, heuristic, or what it consists of
  char* why;        ///< what decided
} tutti_matmul_plan_t;
TUTTI_STRUCT_INIT(matmul_plan, )
/// The plan of a call, without running it. It also prepares the call for captures.
TUTTI_API tutti_status_t tutti_matmul_plan(const tutti_matmul_t* call, tutti_matmul_plan_t* plan);
/// Measures what this call could run, and returns the plan: tutti::tune(). `plan` may be null.
TUTTI_API tutti_status_t tutti_matmul_tune(tutti_stream_t stream, const tutti_matmul_t* call,
                                           tutti_matmul_plan_t* plan);
/// A text that explains the choice. Free it with tutti_string_free().
TUTTI_API tutti_status_t tutti_matmul_explain(const tutti_matmul_t* call, char** text);

/// What pipelined algorithms do differently: tutti::AllGatherMatmulPipeline.
typedef struct tutti_pipeline_options_t {
  size_t size;
  const char* protocol;  ///< "get" or "put"; null: "get"
  const char* mover;     ///< "copy_engine" or "kernel"; null: "copy_engine"
  int streams;           ///< 1 to 16. Default: 4
  int tiles;             ///< of each shard, for pipelined_tiles: 1 to 64. Default: 8
  int inter_stream_order;
  int reserved;  ///< 0
} tutti_pipeline_options_t;
TUTTI_STRUCT_INIT(pipeline_options, value.streams = 4; value.tiles = 8;)

/// Arguments of tutti_all_gather_matmul().
typedef struct tutti_all_gather_matmul_t {
  size_t size;
  const void* a;  ///< [rows, k], row-major: this rank's shard of A
  size_t m;       ///< rows of the gathered A, and of C
  size_t k;
  size_t lda;                          ///< k, or 0, which means the same
  tutti_matmul_product_t product;      ///< the first product
  const tutti_matmul_product_t* more;  ///< further products of the same A
  size_t more_count;
  void* gathered;   ///< [m, k]: receives the gathered A; null: not wanted
  void* workspace;  ///< at least tutti_all_gather_matmul_workspace() bytes
  size_t workspace_bytes;
  tutti_stream_t stream;
  const char* algorithm;  ///< "unfused", "fused", ...; null: chosen
  const char* transport;  ///< of "fused": tutti::AllGatherMatmulFused; null: "auto"
  const tutti_pipeline_options_t* pipeline;  ///< null: defaults
  int64_t timeout_ms;                        ///< 0: the communicator's
  tutti_data_type_t dtype;                   ///< bf16, fp16 or fp32. Default: TUTTI_BFLOAT16
  tutti_matrix_layout_t b_layout;            ///< of all B
} tutti_all_gather_matmul_t;
TUTTI_STRUCT_INIT(all_gather_matmul, value.dtype = TUTTI_BFLOAT16;)
/// C = A x B + bias for each product, where A is the concatenation of all ranks' shards.
TUTTI_API tutti_status_t tutti_all_gather_matmul(tutti_communicator_t* communicator,
                                                 const tutti_all_gather_matmul_t* call);
/// The smallest `workspace_bytes` of this call.
TUTTI_API tutti_status_t tutti_all_gather_matmul_workspace(tutti_communicator_t* communicator,
                                                           const tutti_all_gather_matmul_t* call,
                                                           size_t* bytes);
/// The plan of a call on this rank, without running it. It also prepares the product for captures.
TUTTI_API tutti_status_t tutti_all_gather_matmul_plan(tutti_communicator_t* communicator,
                                                      const tutti_all_gather_matmul_t* call,
                                                      tutti_matmul_plan_t* plan);
/// A text that explains the choice. Free it with tutti_string_free().
TUTTI_API tutti_status_t tutti_all_gather_matmul_explain(tutti_communicator_t* communicator,
                                                         const tutti_all_gather_matmul_t* call,
                                                         char** text);

#ifdef __cplusplus
}
#endif
