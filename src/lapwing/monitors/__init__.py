"""Questions that are answered again and again while events come in, for one price that is paid at the beginning."""

from lapwing.monitors.alerts import Alarm, Alert
from lapwing.monitors.monitor import Monitor, create_monitor, list_monitors, open_monitor
from lapwing.monitors.tick import Tick

__all__ = ["Alarm", "Alert", "Monitor", "Tick", "create_monitor", "list_monitors", "open_monitor"]
