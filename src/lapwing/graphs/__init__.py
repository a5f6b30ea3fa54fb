"""Statistics of graphs, with an edge or a whole node protected.

import lapwing as lw

graph = lw.graphs.connect("lapwing.toml", "friends")
answer = graph.ask("edge_count", epsilon=0.5)
"""

from lapwing.graphs.answer import GraphAnswer, GraphPreview, NumberPreview
from lapwing.graphs.graph_session import GraphSession, connect, open_graph_session

__all__ = ["GraphAnswer", "GraphPreview", "GraphSession", "NumberPreview", "connect", "open_graph_session"]
