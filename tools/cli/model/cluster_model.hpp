// What a cluster is to the simulation: links between nodes and within them, and what a message
// costs the processors at its ends. Values, without behaviour; links.hpp reads them from files.
//
// Rates are in Gbit/s as links are sold, of each direction; times in microseconds.
#pragma once

#include <string>
#include <vector>

namespace tutti::model {

// A link sends messages in the order in which they were given to it. Its two directions do not
// disturb each other.
struct Link {
  double gbit_per_s = 0;
  double delay_us = 0;       // one way: from the first bit sent to the same bit received
  double payload_part = 1;   // of the bytes on the wire, what the frames leave: 8948/9014 for TCP
  double message_bytes = 0;  // on the wire, with each message
  double burst_bytes = 0;    // of a token bucket: so many pass at once after a rest
  friend bool operator==(const Link&, const Link&) = default;
};

struct Processor {
  double start_us = 0;                 // of an operation, on each rank
  double send_us = 0, receive_us = 0;  // of each message
  double local_us = 0;                 // of each chunk that is copied or added without a message
  double copy_gb_per_s = 0;            // of payload that is sent or received; 0: costs nothing
  double sum_gb_per_s = 0;             // of payload that is added; 0: costs nothing
  // So many processors for the ranks of all nodes together, as where nodes are namespaces of one
  // machine; 0: each rank has its own.
  int shared = 0;
  friend bool operator==(const Processor&, const Processor&) = default;
};

struct ClusterModel {
  std::string name;  // "ib400", or the file's
  int nodes = 2, ranks_per_node = 1;
  Link between, within;
  // Links of a node to the others, by their speed as a part of `between`: rank p of a node uses
  // rail p modulo their number. Empty: each rank has one of its own.
  std::vector<double> rails = {};
  Processor processor;

  int ranks() const { return nodes * ranks_per_node; }
  friend bool operator==(const ClusterModel&, const ClusterModel&) = default;
};

}  // namespace tutti::model
