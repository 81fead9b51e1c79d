"""What Airflow's web server is given: pages on which people see campaigns and act on them."""
